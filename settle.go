package raftlease

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/raft"

	"github.com/raftlease/raftlease/internal/wire"
	"github.com/raftlease/raftlease/lease"
	"github.com/raftlease/raftlease/transport/rpc"
	pb "github.com/raftlease/raftlease/transport/rpc/raftleasev1"
)

const (
	settlePause   = 300 * time.Millisecond // between two tries of what does not work yet
	lonelyPause   = 5 * time.Second        // without a leader, before the others are asked why
	settleTimeout = 5 * time.Second        // of one call
)

// settle does what a member does about itself, until ctx ends: it reclaims what
// its former process had, asks to be added and to get a vote, tells a new
// address, and stops the node when it was removed.
func (m *member) settle(ctx context.Context) {
	reclaimed := false
	for ctx.Err() == nil {
		change := m.change()
		pause, err := m.settleOnce(ctx, &reclaimed)
		if err != nil {
			m.n.fail(err)
			return
		}
		timer := time.NewTimer(pause)
		select {
		case <-change:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// settleOnce does the next thing there is to do and returns when to look again.
func (m *member) settleOnce(ctx context.Context, reclaimed *bool) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	leader, _ := m.leader()
	servers, _ := m.servers()
	self, known := m.server(m.n.cfg.ID)
	switch {
	case len(servers) == 0:
		return settlePause, m.askToJoin(ctx)
	case !known:
		return settlePause, m.removed(ctx, servers)
	case string(self.Address) != m.n.addr:
		m.tried("tell the new address", m.moved(ctx, servers))
		return settlePause, nil
	case leader == "" && m.lonely():
		return lonelyPause, m.removed(ctx, servers)
	case leader == "":
		return lonelyPause, nil
	case self.Suffrage != raft.Voter:
		if r := m.raft.Load(); r.AppliedIndex() > 0 && r.AppliedIndex()+caughtUp >= r.CommitIndex() {
			m.tried("ask for a vote", m.n.Promote(ctx, m.n.cfg.ID))
		}
		return settlePause, nil
	case !*reclaimed:
		err := m.reclaim(ctx)
		m.tried("reclaim leases of the former process", err)
		*reclaimed = err == nil
		if err != nil {
			return settlePause, nil
		}
	}
	return lonelyPause, nil
}

// tried logs what did not work and will be tried again.
func (m *member) tried(what string, err error) {
	if err != nil {
		m.n.log.Debug(what, "err", err)
	}
}

// lonely reports whether no leader was heard for long, or ever.
func (m *member) lonely() bool {
	return time.Since(m.raft.Load().LastContact()) > lonelyPause
}

// reclaim ends the grants that earlier runs of this process on this disk had for
// their own service. The disk is locked by its process, so those runs are over.
func (m *member) reclaim(ctx context.Context) error {
	s := m.n.session()
	if s.Incarnation < 2 {
		return nil
	}
	_, _, err := m.n.do(ctx, &pb.Operation{Op: &pb.Operation_Reclaim{Reclaim: &pb.Reclaim{Session: s}}})
	return err
}

// askToJoin asks the member at Config.Join to add this node.
func (m *member) askToJoin(ctx context.Context) error {
	if m.n.cfg.Join == "" {
		m.n.waitFor("this node joins a cluster and has not been added: set Join to the address of a member")
		return nil
	}
	_, err := m.n.clients.Cluster(m.n.cfg.Join).AddMember(ctx, &pb.AddMemberRequest{Id: m.n.cfg.ID, Address: m.n.addr})
	if errors.Is(wire.Err(rpc.Detail(err)), lease.ErrInvalid) {
		return fmt.Errorf("join through %q: %w", m.n.cfg.Join, err)
	}
	m.tried("ask to be added", err)
	return nil
}

// moved tells the cluster this node's new address. The leader may be unable to
// reach this node for as long as it does not know it, so any member will do.
func (m *member) moved(ctx context.Context, servers []raft.Server) error {
	if leader, _ := m.leader(); leader != "" {
		return m.n.AddMember(ctx, m.n.cfg.ID, m.n.addr)
	}
	var errs []error
	for _, s := range servers {
		if string(s.ID) == m.n.cfg.ID {
			continue
		}
		req := &pb.AddMemberRequest{Id: m.n.cfg.ID, Address: m.n.addr}
		if _, err := m.n.clients.Cluster(string(s.Address)).AddMember(ctx, req); err != nil {
			errs = append(errs, err)
			continue
		}
		return nil
	}
	return errors.Join(errs...)
}

// removed asks the others whether this node is still a member. Only who leads
// knows; that its own log says so is not enough, because a node that joined again
// reads there of its earlier removal.
func (m *member) removed(ctx context.Context, servers []raft.Server) error {
	for _, s := range servers {
		if string(s.ID) == m.n.cfg.ID {
			continue
		}
		st, err := m.n.clients.Cluster(string(s.Address)).Status(ctx, &pb.StatusRequest{})
		if err != nil || st.ClusterId != m.cluster || st.State != stateLeader {
			continue
		}
		for _, member := range st.Members {
			if member.Id == m.n.cfg.ID {
				return nil
			}
		}
		return fmt.Errorf("node %q was removed from cluster %q: to make it a member again, start it with an empty data directory "+
			"and Join set to the address of a member", m.n.cfg.ID, m.cluster)
	}
	return nil
}
