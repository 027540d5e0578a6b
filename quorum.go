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

// quorum is the granter's view of the other voters (docs/DESIGN.md, the confirm
// round).
type quorum struct{ m *member }

// Confirm implements granter.Quorum. It asks the voters of one configuration,
// read after the call, and counts each of them once (rule 14): this node only if
// it is a voter itself.
func (q quorum) Confirm(ctx context.Context, term uint64) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // of the questions that are no longer needed
	servers, _ := q.m.servers()
	voters, confirmed := 0, 0
	answers := make(chan error, len(servers))
	asked := 0
	for _, s := range servers {
		if s.Suffrage != raft.Voter {
			continue
		}
		voters++
		if string(s.ID) == q.m.n.cfg.ID {
			if q.m.n.disk.Stable.Promised() == term {
				confirmed++
			}
			continue
		}
		asked++
		q.m.wg.Go(func() { answers <- q.ask(ctx, s, term) })
	}
	need := voters/2 + 1
	var last error
	for ; confirmed < need && asked > 0; asked-- {
		if confirmed+asked < need {
			break
		}
		if err := <-answers; err != nil {
			last = err
			continue
		}
		confirmed++
	}
	if confirmed < need || voters == 0 {
		return fmt.Errorf("%w %d: %d of %d, want %d: %w", errNoMajority, term, confirmed, voters, need, last)
	}
	return nil
}

// ask asks one voter until it answers or ctx ends.
func (q quorum) ask(ctx context.Context, s raft.Server, term uint64) error {
	req := &pb.ConfirmRequest{ClusterId: q.m.cluster, To: string(s.ID), Term: term}
	for {
		// The address may be another's by now: only the node itself counts.
		a, err := q.m.n.clients.Peer(string(s.Address)).Confirm(ctx, req)
		switch {
		case err == nil && a.ClusterId == req.ClusterId && a.Id == req.To && a.Promised == term:
			return nil
		case err == nil:
			return fmt.Errorf("voter %q of cluster %q has promised term %d", a.Id, a.ClusterId, a.Promised)
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
