package raftlease

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/raft"

	pb "github.com/raftlease/raftlease/transport/rpc/raftleasev1"
)

// confirmPause is the time before a voter that did not answer is asked again in
// the same round.
const confirmPause = 50 * time.Millisecond

var errNoMajority = errors.New("no majority of the voters confirmed the term")

// quorum asks the voters for the granter (docs/DESIGN.md, the confirm round).
type quorum struct {
	self     string               // this node's id
	servers  func() []raft.Server // the latest configuration
	promised func() uint64        // this node's own promise
	start    func(func())         // runs a function on a goroutine that somebody waits for
	ask      func(ctx context.Context, id, addr string, term uint64) (*pb.ConfirmResponse, error)
	cluster  string
}

// quorum returns the voters as the member sees them.
func (m *member) quorum() quorum {
	return quorum{
		self:     m.n.cfg.ID,
		cluster:  m.cluster,
		servers:  func() []raft.Server { servers, _ := m.servers(); return servers },
		promised: m.n.disk.Stable.Promised,
		start:    m.wg.Go,
		ask: func(ctx context.Context, id, addr string, term uint64) (*pb.ConfirmResponse, error) {
			return m.n.clients.Peer(addr).Confirm(ctx, &pb.ConfirmRequest{ClusterId: m.cluster, To: id, Term: term})
		},
	}
}

// Confirm implements granter.Quorum. It reads one configuration after the call
// and counts each of its voters once, and nobody else (rule 14): this node too
// only if it is a voter.
func (q quorum) Confirm(ctx context.Context, term uint64) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // of the questions that are no longer needed
	servers := q.servers()
	need := voters(servers)/2 + 1
	confirmed, open := 0, 0
	answers := make(chan error, len(servers))
	for _, s := range servers {
		switch {
		case s.Suffrage != raft.Voter:
		case string(s.ID) != q.self:
			open++
			q.start(func() { answers <- q.confirm(ctx, s, term) })
		case q.promised() == term:
			confirmed++
		}
	}
	var refusal error
	for confirmed < need && confirmed+open >= need {
		open--
		if err := <-answers; err != nil {
			refusal = err
		} else {
			confirmed++
		}
	}
	if confirmed < need {
		return fmt.Errorf("%w %d: %d of %d did, the last that did not: %v", errNoMajority, term, confirmed, voters(servers), refusal)
	}
	return nil
}

// confirm asks one voter until it answers or ctx ends.
func (q quorum) confirm(ctx context.Context, s raft.Server, term uint64) error {
	for {
		a, err := q.ask(ctx, string(s.ID), string(s.Address), term)
		switch {
		// The address may be another's by now: only the node itself counts.
		case err == nil && a.ClusterId == q.cluster && a.Id == string(s.ID) && a.Promised == term:
			return nil
		case err == nil:
			return fmt.Errorf("node %q of cluster %q has promised term %d", a.Id, a.ClusterId, a.Promised)
		}
		pause := time.NewTimer(confirmPause)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return fmt.Errorf("ask voter %q: %w", s.ID, err)
		}
	}
}
