package raftlease

import (
	"strings"
	"time"

	"github.com/hashicorp/raft"
)

// Version is the version of this library.
const Version = "0.1.0-dev"

// States of a node.
const (
	stateForming  = "forming"
	stateLeader   = "leader"
	stateStopping = "stopping"
)

// Member is a node of the cluster.
type Member struct {
	ID      string
	Address string
	Voter   bool
	Leader  bool
}

// Status is what one node knows, without asking the others.
type Status struct {
	ID            string
	Cluster       string // its id; empty while forming
	Address       string
	State         string // forming, follower, candidate, leader, stopping
	Leader        string // its id; empty when none is known
	LeaderAddress string
	Term          uint64
	AppliedIndex  uint64
	CommitIndex   uint64
	LastIndex     uint64
	Members       []Member
	Leases        int    // live grants in this node's state
	NextToken     uint64 // of the next grant
	LastContact   time.Duration
	HasContact    bool // a leader was heard; false on the leader itself
	Owner         string
	Waiting       string // while forming: for what
}

// Status returns what this node knows about itself and the cluster.
func (n *Node) Status() Status {
	s := Status{ID: n.cfg.ID, Address: n.addr, State: stateForming, Owner: n.Owner()}
	m, _ := n.current()
	if m == nil {
		s.Waiting = n.waiting()
		return n.stopping(s)
	}
	r := m.raft.Load()
	s.Cluster = m.cluster
	s.State = strings.ToLower(r.State().String())
	s.Leader, _ = m.leader()
	s.LeaderAddress, _ = m.address(s.Leader)
	s.Term, s.CommitIndex, s.LastIndex = r.CurrentTerm(), r.CommitIndex(), r.LastIndex()
	s.AppliedIndex = r.AppliedIndex()
	s.Leases, s.NextToken = m.fsm.machine.Live(), m.fsm.machine.NextToken()
	if last := r.LastContact(); !last.IsZero() && r.State() != raft.Leader {
		s.LastContact, s.HasContact = time.Since(last), true
	}
	servers, _ := m.servers()
	for _, p := range servers {
		s.Members = append(s.Members, Member{
			ID: string(p.ID), Address: string(p.Address), Voter: p.Suffrage == raft.Voter, Leader: string(p.ID) == s.Leader,
		})
	}
	return n.stopping(s)
}

func (n *Node) stopping(s Status) Status {
	if n.ctx.Err() != nil {
		s.State = stateStopping
	}
	return s
}
