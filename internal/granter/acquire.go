package granter

import (
	"context"

	"github.com/raftlease/raftlease/internal/state"
	pb "github.com/raftlease/raftlease/transport/rpc/raftleasev1"
)

func (g *Granter) acquire(ctx context.Context, op *pb.Operation, req *pb.AcquireRequest) *pb.OperationResult {
	arrived := g.cfg.Clock()
	g.mu.Lock()
	g.arrivals++
	order := g.arrivals
	g.mu.Unlock()
	for {
		if r := g.stopped(ctx); r != nil {
			return r
		}
		w := &waiter{
			name: req.Name, owner: req.Owner, ttl: req.Ttl.AsDuration(), session: session(op.Session),
			wait: req.Wait, id: op.WaitId, order: order,
			arrived: arrived, offered: g.cfg.Clock(), answer: make(chan *pb.OperationResult, 1),
		}
		if r := g.acquireOnce(ctx, w); r != nil {
			return r
		}
	}
}

// acquireOnce returns nil when the lease changed meanwhile and w has to be
// looked at again.
func (g *Granter) acquireOnce(ctx context.Context, w *waiter) *pb.OperationResult {
	g.mu.Lock()
	s := g.slots[w.name]
	switch {
	case s != nil && s.live && s.owner == w.owner && s.ending == nil:
		token := s.token
		return own(g.extend(ctx, s, w.ttl, w.command(), s.session != w.session), token, w) // unlocks
	case s != nil && s.live && s.ending == nil && !w.wait:
		holder, token := s.owner, s.token
		g.mu.Unlock()
		return g.refuse(ctx, w.name, holder, token)
	case s == nil || !w.wait:
		// Free, or about to be, as far as this leader has applied: the log decides.
		g.mu.Unlock()
		return g.try(ctx, w)
	}
	g.park(s, w)
	g.mu.Unlock()
	return g.await(ctx, w)
}

// try proposes w's acquire. When another has the name after all, w is parked if
// it wants to wait.
func (g *Granter) try(ctx context.Context, w *waiter) *pb.OperationResult {
	w.proposal = &proposal{cmds: []state.Command{w.command()}, done: func(rs []state.Result, err error) {
		g.mu.Lock()
		defer g.mu.Unlock()
		switch {
		case err != nil:
			w.reply(failed(err))
		case rs[0].Code == state.Held && w.wait:
			if !w.gone {
				g.park(g.slot(w.name), w)
			}
		default:
			g.conclude(w, rs[0])
		}
	}}
	if !g.proposer.propose(w.proposal) {
		return notLeader()
	}
	return g.await(ctx, w)
}

// refuse answers "held" once it is confirmed, nil when the holder changed
// meanwhile.
func (g *Granter) refuse(ctx context.Context, name, holder string, token uint64) *pb.OperationResult {
	if err := g.confirm.join(ctx); err != nil {
		return notLeader()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if s := g.slots[name]; !s.is(holder, token) {
		return nil
	}
	return refused(g.held(name, holder, token))
}

// own is the answer to an owner that acquired what it has, nil for nil.
func own(r *pb.OperationResult, token uint64, w *waiter) *pb.OperationResult {
	if r.GetOutcome() == pb.Outcome_OUTCOME_DONE && r.GetError() == nil {
		return w.granted(token)
	}
	return r
}
