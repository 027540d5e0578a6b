package granter

import (
	"cmp"
	"context"
	"errors"
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
	wait    bool   // park when another has the name
	id      uint64 // of a wait, for AbandonWait; 0 for none
	order   uint64 // rises with arrival; who came first is served first

	arrived  time.Duration            // by the granter's clock
	offered  time.Duration            // when its Acquire was last proposed
	proposal *proposal                // of its own, before it was parked; or nil
	answer   chan *pb.OperationResult // nil is sent when it has to ask again

	gone bool // nobody listens any more; guarded by Granter.mu
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

// reply answers w. It is called once, by whoever takes w out of the queue or has
// the outcome of w's own proposal, and so never blocks.
func (w *waiter) reply(r *pb.OperationResult) { w.answer <- r }

// await returns w's answer, nil when it has to ask again, or gives w up when ctx
// or the term ends. A grant that comes for a waiter that has gone is ended at
// once.
func (g *Granter) await(ctx context.Context, w *waiter) *pb.OperationResult {
	select {
	case r := <-w.answer:
		if ctx.Err() == nil {
			return r
		}
		return g.tooLate(w, r)
	case <-ctx.Done():
	case <-g.ctx.Done():
	}
	return g.giveUp(ctx, w)
}

// giveUp removes w from its queue. Where its acquire was never proposed nothing
// was done; else its answer, when it comes, is for nobody.
func (g *Granter) giveUp(ctx context.Context, w *waiter) *pb.OperationResult {
	if w.proposal != nil && g.proposer.withdraw(w.proposal) {
		return notLeader()
	}
	g.mu.Lock()
	select {
	case r := <-w.answer:
		g.mu.Unlock()
		if ctx.Err() == nil {
			return r
		}
		return g.tooLate(w, r)
	default:
	}
	defer g.mu.Unlock()
	w.gone = true
	if s := g.slots[w.name]; s != nil && s.turn != w && s.dequeue(w) {
		g.tidy(s)
		return notLeader()
	}
	return unknown()
}

// tooLate deals with an answer whose caller's ctx has ended.
func (g *Granter) tooLate(w *waiter, r *pb.OperationResult) *pb.OperationResult {
	a := r.GetAcquire()
	if a == nil {
		return r
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	w.gone = true
	g.abandon(w, a.Token)
	return unknown()
}

// conclude answers w, whose Acquire had the result r, or ends the grant that
// nobody will hear of. g.mu is held.
func (g *Granter) conclude(w *waiter, r state.Result) {
	switch {
	case !w.gone:
		if s := g.slots[w.name]; r.New && s.is(w.owner, r.Lease.Token) {
			s.wonBy = w.id
		}
		w.reply(g.acquired(w, r))
	case r.Code == state.OK:
		g.abandon(w, r.Lease.Token)
	}
}

// abandon ends the grant that w got and nobody will hear of, unless its owner
// has claimed it by another call since. g.mu is held.
func (g *Granter) abandon(w *waiter, token uint64) {
	if s := g.slots[w.name]; s.is(w.owner, token) && !s.claimed && s.ending == nil {
		g.agenda.drop(s)
		g.end([]*slot{s})
	}
}

// abandonWait ends the grant that a wait won whose caller has gone, unless it was
// claimed since. Where the wait is still under way here, the end of its own ctx
// does the same; that of another node may come too late, with the answer on its
// way back.
func (g *Granter) abandonWait(req *pb.AbandonWait) *pb.OperationResult {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.slots[req.Name]
	if s != nil && s.live && req.WaitId != 0 && s.wonBy == req.WaitId && !s.claimed && s.ending == nil {
		g.agenda.drop(s)
		g.end([]*slot{s})
	}
	return done()
}

// park queues w by its arrival among those who wait for its name. g.mu is held.
func (g *Granter) park(s *slot, w *waiter) {
	if s.live && s.owner == w.owner && s.ending == nil {
		w.reply(nil) // what it waits for is its own by now
		return
	}
	i, _ := slices.BinarySearchFunc(s.waiters, w, func(a, b *waiter) int { return cmp.Compare(a.order, b.order) })
	s.waiters = slices.Insert(s.waiters, i, w)
	if !s.live {
		g.offer(s)
	}
}

// firstWaiter takes the one whose turn it is, nil when nobody waits or an offer
// is under way. Its command has to be proposed. g.mu is held.
func (g *Granter) firstWaiter(s *slot) *waiter {
	if s.turn != nil || len(s.waiters) == 0 {
		return nil
	}
	w := s.waiters[0]
	if heir := s.waiting(s.heir); heir != nil {
		w = heir
	}
	s.turn = w
	w.offered = g.cfg.Clock()
	return w
}

// offer proposes the acquire of the first who waits. g.mu is held.
func (g *Granter) offer(s *slot) {
	w := g.firstWaiter(s)
	if w == nil {
		return
	}
	g.proposer.propose(&proposal{
		cmds: []state.Command{w.command()},
		done: func(rs []state.Result, err error) { g.offered([]*waiter{w}, rs, err) },
	})
}

// offered deals with the outcome of offers.
func (g *Granter) offered(ws []*waiter, rs []state.Result, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, w := range ws {
		s := g.slots[w.name] // there is one: it stays while somebody waits
		s.turn = nil
		switch {
		case err != nil && (w.gone || !s.live || !errors.Is(err, errNotProposed) || endsTerm(err)):
			s.dequeue(w)
			w.reply(failed(err))
		case err != nil, rs[i].Code == state.Held && !w.gone:
			// It keeps its place until the name is free: what was to free it did
			// not enter the log or did not fire, or somebody was faster.
		default:
			s.dequeue(w)
			g.conclude(w, rs[i])
		}
		if !s.live {
			g.offer(s)
		}
		g.tidy(s)
	}
}

// serveOwner makes those ask again who wait for what their own owner has. One
// whose Acquire is under way gets its answer from that. g.mu is held.
func (g *Granter) serveOwner(s *slot) {
	for _, w := range slices.Clone(s.waiters) {
		if w.owner == s.owner && w != s.turn {
			s.dequeue(w)
			w.reply(nil)
		}
	}
}

// dequeue takes w out of the queue and reports whether it was there.
func (s *slot) dequeue(w *waiter) bool {
	i := slices.Index(s.waiters, w)
	if i >= 0 {
		s.waiters = slices.Delete(s.waiters, i, i+1)
		s.stir()
	}
	return i >= 0
}
