package granter

import (
	"context"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/raftlease/raftlease/internal/state"
	pb "github.com/raftlease/raftlease/transport/rpc/raftleasev1"
)

// waiter is one acquire on its way: proposed, or parked until the name becomes
// free.
type waiter struct {
	name    string
	owner   string
	ttl     time.Duration
	session state.Session

	arrived time.Duration // by the granter's clock
	offered time.Duration // when its Acquire was last proposed
	answer  chan *pb.OperationResult
	gone    bool // nobody listens any more; guarded by Granter.mu
}

func (w *waiter) command() state.Command {
	return state.Command{Kind: state.KindAcquire, Name: w.name, Owner: w.owner, TTL: w.ttl, Session: w.session}
}

// granted is the answer to w when it got the name with this token. What it
// waited before its acquire was offered is no lease time.
func (w *waiter) granted(token uint64) *pb.OperationResult {
	return &pb.OperationResult{Outcome: pb.Outcome_OUTCOME_DONE, Response: &pb.OperationResult_Acquire{
		Acquire: &pb.AcquireResponse{
			Token:  token,
			Ttl:    durationpb.New(w.ttl),
			Parked: durationpb.New(max(w.offered-w.arrived, 0)),
		},
	}}
}

// await returns w's answer, or gives w up when ctx or the term ends. A grant
// that comes for a waiter that has gone is ended at once.
func (g *Granter) await(ctx context.Context, w *waiter) *pb.OperationResult {
	select {
	case r := <-w.answer:
		if ctx.Err() == nil {
			return r
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		g.abandon(w, r)
	case <-ctx.Done():
		return g.giveUp(w, context.Cause(ctx))
	case <-g.ctx.Done():
		return g.giveUp(w, errOver)
	}
	return unknown(context.Cause(ctx))
}

// giveUp removes w from its queue. Where its acquire was never proposed nothing
// was done; else its answer, when it comes, is for nobody.
func (g *Granter) giveUp(w *waiter, why error) *pb.OperationResult {
	g.mu.Lock()
	defer g.mu.Unlock()
	w.gone = true
	select {
	case r := <-w.answer:
		g.abandon(w, r)
		return unknown(why)
	default:
	}
	if s := g.slots[w.name]; s != nil {
		if i := slices.Index(s.waiters, w); i > 0 || i == 0 && !s.offered {
			s.waiters = slices.Delete(s.waiters, i, i+1)
			g.tidy(s)
			return notLeader(why)
		}
	}
	return unknown(why)
}

// abandon ends the grant that w got and nobody will hear of, unless its owner
// has claimed it by another call since. g.mu is held.
func (g *Granter) abandon(w *waiter, r *pb.OperationResult) {
	s := g.slots[w.name]
	if a := r.GetAcquire(); a != nil && s.is(w.owner, a.Token) && !s.claimed && s.ending == nil {
		g.agenda.drop(s)
		g.end([]*slot{s})
	}
}

// park queues w behind those who already wait for its name. g.mu is held.
func (g *Granter) park(s *slot, w *waiter) {
	s.waiters = append(s.waiters, w)
	if !s.live {
		g.offer(s)
	}
}

// firstWaiter takes the one whose turn it is, nil when nobody waits or an offer
// is under way. Its command has to be proposed. g.mu is held.
func (g *Granter) firstWaiter(s *slot) *waiter {
	for !s.offered && len(s.waiters) > 0 {
		w := s.waiters[0]
		if w.gone {
			s.waiters = s.waiters[1:]
			continue
		}
		s.offered = true
		w.offered = g.cfg.Clock()
		return w
	}
	return nil
}

// offer proposes the acquire of the first who waits. g.mu is held.
func (g *Granter) offer(s *slot) {
	w := g.firstWaiter(s)
	if w == nil {
		return
	}
	g.proposer.propose(proposal{
		cmds: []state.Command{w.command()},
		done: func(rs []state.Result, err error) { g.offered([]*waiter{w}, rs, err) },
	})
}

// offered deals with the outcome of offers.
func (g *Granter) offered(ws []*waiter, rs []state.Result, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, w := range ws {
		s := g.slots[w.name]
		if s == nil {
			continue // cannot be: a slot stays while somebody waits
		}
		s.offered = false
		switch {
		case err != nil:
			g.dequeue(s, w, failed(err))
		case rs[i].Code == state.Held && !w.gone:
			// Somebody was faster, or the expiry did not fire: w keeps its place.
		default:
			g.dequeue(s, w, g.acquired(w, rs[i]))
			g.serveOwner(s)
		}
		if !s.live {
			g.offer(s)
		}
		g.tidy(s)
	}
}

// serveOwner sends those back who wait for what their own owner has: they get it
// by asking again. g.mu is held.
func (g *Granter) serveOwner(s *slot) {
	for _, w := range slices.Clone(s.waiters) {
		if s.live && w.owner == s.owner {
			g.dequeue(s, w, notLeader(errAgain))
		}
	}
}

// dequeue answers w and takes it out of the queue. g.mu is held.
func (g *Granter) dequeue(s *slot, w *waiter, r *pb.OperationResult) {
	if i := slices.Index(s.waiters, w); i >= 0 {
		s.waiters = slices.Delete(s.waiters, i, i+1)
	}
	if w.gone {
		g.abandon(w, r)
		return
	}
	w.answer <- r
}
