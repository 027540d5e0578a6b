package granter

import (
	"context"
	"time"

	"github.com/raftlease/raftlease/internal/state"
	"github.com/raftlease/raftlease/lease"
	pb "github.com/raftlease/raftlease/transport/rpc/raftleasev1"
)

// Do carries out one operation of a store. It returns when the answer is known,
// the term is over or ctx ended. Arguments are expected to be valid; the state
// machine refuses what would harm it.
func (g *Granter) Do(ctx context.Context, op *pb.Operation) *pb.OperationResult {
	if g.Over() {
		return notLeader(errOver)
	}
	switch o := op.Op.(type) {
	case *pb.Operation_Acquire:
		return g.acquire(ctx, o.Acquire, session(op.Session))
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
	case *pb.Operation_Reclaim:
		return g.simple(ctx, state.Command{Kind: state.KindReclaim, Session: session(o.Reclaim.GetSession())})
	}
	return refused(&pb.ErrorDetail{Code: pb.ErrorCode_ERROR_CODE_INVALID, Faults: []*pb.Fault{{
		Field: "operation", Value: "unknown", Allowed: "one that the leader's version knows: upgrade the leader first"}}})
}

func session(s *pb.Session) state.Session {
	return state.Session{Node: s.GetNode(), Disk: s.GetDisk(), Incarnation: s.GetIncarnation()}
}

func (g *Granter) acquire(ctx context.Context, req *pb.AcquireRequest, from state.Session) *pb.OperationResult {
	arrived := g.cfg.Clock()
	for {
		w := &waiter{
			name: req.Name, owner: req.Owner, ttl: req.Ttl.AsDuration(), session: from,
			arrived: arrived, offered: g.cfg.Clock(), answer: make(chan *pb.OperationResult, 1),
		}
		g.mu.Lock()
		s := g.slots[req.Name]
		switch {
		case s != nil && s.live && s.owner == req.Owner && s.ending == nil:
			token := s.token
			if r := g.extend(ctx, s, w.ttl, w.command(), s.session != from); r != nil { // unlocks
				return own(r, token, w)
			}
			continue
		case s == nil || !s.live && len(s.waiters) == 0 || s.ending != nil && !req.Wait:
			g.mu.Unlock()
			if r := g.try(ctx, w, req.Wait); r != nil {
				return r
			}
			continue
		case req.Wait:
			g.park(s, w)
			g.mu.Unlock()
			return g.await(ctx, w)
		}
		holder, token := s.owner, s.token
		g.mu.Unlock()
		if r := g.refuse(ctx, req.Name, holder, token); r != nil {
			return r
		}
	}
}

// try proposes w's acquire. nil when the name is held after all and the caller
// wants to wait for it.
func (g *Granter) try(ctx context.Context, w *waiter, wait bool) *pb.OperationResult {
	taken := g.proposer.propose(proposal{cmds: []state.Command{w.command()}, done: func(rs []state.Result, err error) {
		g.mu.Lock()
		defer g.mu.Unlock()
		var r *pb.OperationResult
		if err != nil {
			r = failed(err)
		} else {
			r = g.acquired(w, rs[0])
		}
		if w.gone {
			g.abandon(w, r)
			return
		}
		w.answer <- r
	}})
	if !taken {
		return notLeader(errOver)
	}
	r := g.await(ctx, w)
	if wait && r.Error.GetCode() == pb.ErrorCode_ERROR_CODE_HELD {
		return nil
	}
	return r
}

// refuse answers "held" once it is confirmed, nil when the holder changed
// meanwhile.
func (g *Granter) refuse(ctx context.Context, name, holder string, token uint64) *pb.OperationResult {
	if err := g.confirm.join(ctx); err != nil {
		return unconfirmed(ctx)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if s := g.slots[name]; !s.is(holder, token) {
		return nil
	}
	return refused(g.held(name, holder, token))
}

// own is the answer to an owner that acquired what it has.
func own(r *pb.OperationResult, token uint64, w *waiter) *pb.OperationResult {
	if r.Outcome == pb.Outcome_OUTCOME_DONE && r.Error == nil {
		return w.granted(token)
	}
	return r
}

func (g *Granter) renew(ctx context.Context, req *pb.RenewRequest) *pb.OperationResult {
	ttl := req.Ttl.AsDuration()
	for {
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
				return notLeader(context.Cause(ctx))
			case <-g.ctx.Done():
				return notLeader(errOver)
			}
		default:
			cmd := state.Command{Kind: state.KindRenew, Name: req.Name, Owner: req.Owner, Token: req.Token, TTL: ttl}
			if r := g.extend(ctx, s, ttl, cmd, false); r != nil { // unlocks
				return r
			}
		}
	}
}

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
	s.extend(now, ttl)
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
		return unconfirmed(ctx)
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
	if ttl >= s.ttl || s.shorten > 0 || s.deadline > now+lease.Longer(ttl) {
		return
	}
	name, token := s.name, s.token
	s.ttl, s.shorten = ttl, ttl
	g.proposer.propose(proposal{
		cmds: []state.Command{{Kind: state.KindShorten, Name: name, Token: token, TTL: ttl}},
		done: func(_ []state.Result, err error) {
			if err == nil {
				return // Applied has seen it
			}
			g.mu.Lock()
			defer g.mu.Unlock()
			if s := g.slots[name]; s != nil && s.live && s.token == token {
				s.shorten = 0 // s.ttl stays low: at worst a renewal is recorded again
			}
		},
	})
}

// notLive answers "lost" once it is confirmed, nil when the grant is live after
// all.
func (g *Granter) notLive(ctx context.Context, name, owner string, token uint64) *pb.OperationResult {
	if err := g.confirm.join(ctx); err != nil {
		return unconfirmed(ctx)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.slots[name].is(owner, token) {
		return nil
	}
	return refused(g.lost(name, owner, token))
}

func (g *Granter) release(ctx context.Context, req *pb.ReleaseRequest) *pb.OperationResult {
	for {
		g.mu.Lock()
		s := g.slots[req.Name]
		if !s.is(req.Owner, req.Token) {
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
		answer := make(chan *pb.OperationResult, 1)
		cmds := []state.Command{{Kind: state.KindRelease, Name: req.Name, Owner: req.Owner, Token: req.Token}}
		var next []*waiter
		if w := g.firstWaiter(s); w != nil { // one commit for both
			cmds, next = append(cmds, w.command()), []*waiter{w}
		}
		g.mu.Unlock()
		taken := g.proposer.propose(proposal{cmds: cmds, done: func(rs []state.Result, err error) {
			if err != nil {
				answer <- failed(err)
			} else {
				answer <- done()
			}
			g.offered(next, rs[min(1, len(rs)):], err)
		}})
		if !taken {
			return notLeader(errOver)
		}
		select {
		case r := <-answer:
			return r
		case <-ctx.Done():
			return unknown(context.Cause(ctx))
		}
	}
}

func (g *Granter) put(ctx context.Context, req *pb.PutRequest) *pb.OperationResult {
	r, err := g.propose(ctx, state.Command{Kind: state.KindPut, Name: req.Name, Token: req.Token, Data: req.Data})
	switch {
	case err != nil:
		return failed(err)
	case r.Code == state.OK:
		return done()
	case r.Code == state.Rejected:
		return refused(rejected(r))
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return refused(g.lost(req.Name, req.Owner, req.Token))
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
