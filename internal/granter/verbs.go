package granter

import (
	"context"
	"time"

	"github.com/raftlease/raftlease/internal/state"
	"github.com/raftlease/raftlease/lease"
	pb "github.com/raftlease/raftlease/transport/rpc/raftleasev1"
)

// Do carries out one operation of a store. It returns when the answer is known,
// the term is over or ctx ended. Before TakeOver and after the term every answer
// is "not leader". Arguments are expected to be valid; the state machine refuses
// what would harm it.
func (g *Granter) Do(ctx context.Context, op *pb.Operation) *pb.OperationResult {
	if r := g.stopped(ctx); r != nil {
		return r
	}
	switch o := op.Op.(type) {
	case *pb.Operation_Acquire:
		return g.acquire(ctx, op, o.Acquire)
	case *pb.Operation_Renew:
		return g.renew(ctx, o.Renew)
	case *pb.Operation_Release:
		return g.release(ctx, o.Release)
	case *pb.Operation_Put:
		return g.put(ctx, o.Put)
	case *pb.Operation_Get:
		return g.get(ctx, o.Get)
	case *pb.Operation_List:
		return g.list(ctx, o.List)
	case *pb.Operation_Break:
		return g.breakLease(ctx, o.Break)
	case *pb.Operation_Handover:
		return g.handover(ctx, o.Handover)
	case *pb.Operation_Abandon:
		return g.abandonWait(o.Abandon)
	case *pb.Operation_Reclaim:
		return g.simple(ctx, state.Command{Kind: state.KindReclaim, Session: session(o.Reclaim.GetSession())})
	}
	return refused(&pb.ErrorDetail{Code: pb.ErrorCode_ERROR_CODE_INVALID, Faults: []*pb.Fault{{
		Field: "operation", Value: "unknown", Allowed: "one that the leader's version knows: upgrade the leader first"}}})
}

func session(s *pb.Session) state.Session {
	return state.Session{Node: s.GetNode(), Disk: s.GetDisk(), Incarnation: s.GetIncarnation()}
}

func (g *Granter) renew(ctx context.Context, req *pb.RenewRequest) *pb.OperationResult {
	ttl := req.Ttl.AsDuration()
	for {
		if r := g.stopped(ctx); r != nil {
			return r
		}
		g.mu.Lock()
		s := g.slots[req.Name]
		switch {
		case !s.is(req.Owner, req.Token):
			g.mu.Unlock()
			if r := g.notLive(ctx, req.Name, req.Owner, req.Token); r != nil {
				return r
			}
		case s.ending != nil:
			// An expiry is announced: its outcome decides (rule 4).
			ending := s.ending
			g.mu.Unlock()
			select {
			case <-ending:
			case <-ctx.Done():
			case <-g.ctx.Done():
			}
		default:
			cmd := state.Command{Kind: state.KindRenew, Name: req.Name, Owner: req.Owner, Token: req.Token, TTL: ttl}
			if r := g.extend(ctx, s, ttl, cmd, false); r != nil { // unlocks
				return g.renewed(r, req)
			}
		}
	}
}

// longestTTL is more than any store allows. A longer one is not trusted with the
// deadline before the state machine has accepted it: when that rejects it, the
// grant would never end while this leader stays. What is given up for it is only
// one of two defences, the other is the revision that an expiry names.
const longestTTL = 366 * 24 * time.Hour

// extend makes the live grant of s last ttl from now and answers when that is
// certain; nil when the grant changed meanwhile and the caller has to look
// again. It is called with g.mu held and returns without it.
//
// The deadline moves first, before anything is sent. For a renewal that the log
// does not see, the confirm round that begins after it then proves that no later
// leader had begun; one that begins later gives a fresh full ttl anyway, as long
// as the recorded ttl is not smaller. A longer one is therefore recorded first,
// by cmd, and moves the deadline already now: an expiry decided while it is on
// its way could otherwise follow it in the log (rule 10).
func (g *Granter) extend(ctx context.Context, s *slot, ttl time.Duration, cmd state.Command, record bool) *pb.OperationResult {
	now := g.cfg.Clock()
	owner, token := s.owner, s.token
	if ttl <= longestTTL {
		s.extend(now, ttl)
	}
	s.claimed = true
	if record || ttl > s.ttl {
		g.mu.Unlock()
		r, err := g.propose(ctx, cmd)
		switch {
		case err != nil:
			return failed(err)
		case r.Code == state.OK && r.Lease.Token == token:
			return done()
		case r.Code == state.Rejected:
			return refused(rejected(r))
		}
		return nil
	}
	g.shorten(s, now, ttl)
	g.mu.Unlock()
	if err := g.confirm.join(ctx); err != nil {
		return notLeader()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if s := g.slots[cmd.Name]; !s.is(owner, token) || s.ending != nil {
		return nil // rule 5: look again at what was applied
	}
	return done()
}

// shorten lets the recorded ttl follow a smaller one once no longer promise is
// outstanding, so that a take-over does not restart a ttl nobody asks for.
// g.mu is held.
func (g *Granter) shorten(s *slot, now, ttl time.Duration) {
	if ttl >= s.recorded || s.shorten > 0 || s.deadline > now+lease.Longer(ttl) {
		return
	}
	name, token := s.name, s.token
	s.ttl, s.shorten = min(s.ttl, ttl), ttl
	g.proposer.propose(&proposal{
		cmds: []state.Command{{Kind: state.KindShorten, Name: name, Token: token, TTL: ttl}},
		done: func(_ []state.Result, err error) {
			if err == nil {
				return // Applied has seen it
			}
			g.mu.Lock()
			defer g.mu.Unlock()
			if s := g.slots[name]; s != nil && s.live && s.token == token {
				s.shorten = 0 // a later renewal tries again; s.ttl stays low, because the outcome may be unknown
			}
		},
	})
}

// notLive answers "lost" once it is confirmed, nil when the grant is live after
// all.
func (g *Granter) notLive(ctx context.Context, name, owner string, token uint64) *pb.OperationResult {
	if err := g.confirm.join(ctx); err != nil {
		return notLeader()
	}
	reason := g.ended(token)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.slots[name].is(owner, token) {
		return nil
	}
	return refused(g.lost(name, owner, token, reason))
}

func (g *Granter) release(ctx context.Context, req *pb.ReleaseRequest) *pb.OperationResult {
	for {
		if r := g.stopped(ctx); r != nil {
			return r
		}
		g.mu.Lock()
		s := g.slots[req.Name]
		if s.is(req.Owner, req.Token) {
			q, answer := g.free(s)
			taken := g.proposer.propose(q)
			g.mu.Unlock()
			if !taken {
				return notLeader()
			}
			return g.released(ctx, q, answer)
		}
		g.mu.Unlock()
		r := g.notLive(ctx, req.Name, req.Owner, req.Token)
		switch {
		case r == nil:
			continue
		case r.Outcome == pb.Outcome_OUTCOME_DONE:
			return done() // nothing to free, and that is no error
		}
		return r
	}
}

// free makes the proposal that releases the live grant of s and gives the name
// to the first who waits, with one commit for both. g.mu is held.
func (g *Granter) free(s *slot) (*proposal, <-chan *pb.OperationResult) {
	answer := make(chan *pb.OperationResult, 1)
	cmds := []state.Command{{Kind: state.KindRelease, Name: s.name, Owner: s.owner, Token: s.token}}
	var next []*waiter
	if w := g.firstWaiter(s); w != nil {
		cmds, next = append(cmds, w.command()), []*waiter{w}
	}
	return &proposal{cmds: cmds, done: func(rs []state.Result, err error) {
		if err != nil {
			answer <- failed(err)
		} else {
			answer <- done()
		}
		g.offered(next, rs[min(1, len(rs)):], err)
	}}, answer
}

// released waits for the outcome of q.
func (g *Granter) released(ctx context.Context, q *proposal, answer <-chan *pb.OperationResult) *pb.OperationResult {
	select {
	case r := <-answer:
		return r
	case <-ctx.Done():
	case <-g.ctx.Done():
	}
	if g.proposer.withdraw(q) {
		q.done(nil, errNotProposed) // the waiter that was to follow stays in its place
	}
	select {
	case r := <-answer:
		return r
	default:
		return unknown()
	}
}

func (g *Granter) put(ctx context.Context, req *pb.PutRequest) *pb.OperationResult {
	// The log looks at the token alone. That a token is another owner's never
	// changes, so it needs no round to be sure of.
	g.mu.Lock()
	if s := g.slots[req.Name]; s != nil && s.live && s.token == req.Token && s.owner != req.Owner {
		defer g.mu.Unlock()
		return refused(g.lost(req.Name, req.Owner, req.Token, lease.ReasonTaken))
	}
	g.mu.Unlock()
	r, err := g.propose(ctx, state.Command{Kind: state.KindPut, Name: req.Name, Token: req.Token, Data: req.Data})
	switch {
	case err != nil:
		return failed(err)
	case r.Code == state.OK:
		return done()
	case r.Code == state.Rejected:
		return refused(rejected(r))
	}
	reason := g.ended(req.Token)
	g.mu.Lock()
	defer g.mu.Unlock()
	return refused(g.lost(req.Name, req.Owner, req.Token, reason))
}

func (g *Granter) breakLease(ctx context.Context, req *pb.BreakRequest) *pb.OperationResult {
	r, err := g.propose(ctx, state.Command{Kind: state.KindBreak, Name: req.Name})
	switch {
	case err != nil:
		return failed(err)
	case r.Code == state.Rejected:
		return refused(rejected(r))
	case len(r.Ended) == 0:
		return refused(&pb.ErrorDetail{Code: pb.ErrorCode_ERROR_CODE_NOT_FOUND, Name: req.Name})
	}
	return &pb.OperationResult{Outcome: pb.Outcome_OUTCOME_DONE, Response: &pb.OperationResult_Break{
		Break: &pb.BreakResponse{Owner: r.Ended[0].Owner, Token: r.Ended[0].Token}}}
}

func (g *Granter) simple(ctx context.Context, cmd state.Command) *pb.OperationResult {
	switch r, err := g.propose(ctx, cmd); {
	case err != nil:
		return failed(err)
	case r.Code == state.Rejected:
		return refused(rejected(r))
	}
	return done()
}
