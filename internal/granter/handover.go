package granter

import (
	"context"

	pb "github.com/raftlease/raftlease/transport/rpc/raftleasev1"
)

// handover makes the waiting owner req.To the next one to be served, tells the
// holder with its next renewal, and returns when req.To has the name. It takes
// nothing from the holder: when that does not release, ctx ends first. Who waits
// and who is asked is known to this leader only, so the call is repeated at the
// next one.
func (g *Granter) handover(ctx context.Context, req *pb.HandoverRequest) *pb.OperationResult {
	asked := false
	defer func() {
		if asked {
			g.disinherit(req)
		}
	}()
	for {
		if r := g.stopped(ctx); r != nil {
			return r
		}
		g.mu.Lock()
		s := g.slots[req.Name]
		switch {
		case s == nil || !s.live && len(s.waiters) == 0:
			g.mu.Unlock()
			return refused(&pb.ErrorDetail{Code: pb.ErrorCode_ERROR_CODE_NOT_FOUND, Name: req.Name})
		case s.live && s.owner == req.To:
			r := &pb.OperationResult{Outcome: pb.Outcome_OUTCOME_DONE, Response: &pb.OperationResult_Handover{
				Handover: &pb.HandoverResponse{Token: s.token}}}
			g.mu.Unlock()
			return r
		case s.waiting(req.To) == nil:
			g.mu.Unlock()
			return refused(&pb.ErrorDetail{Code: pb.ErrorCode_ERROR_CODE_INVALID, Faults: []*pb.Fault{{
				Field: "to", Value: req.To, Allowed: "the owner of an acquire that waits for this name"}}})
		}
		s.heir, asked = req.To, true
		if s.stirred == nil {
			s.stirred = make(chan struct{})
		}
		stirred := s.stirred
		g.mu.Unlock()
		select {
		case <-stirred:
		case <-ctx.Done():
			return unknown() // the holder may have heard of it
		case <-g.ctx.Done():
			return notLeader()
		}
	}
}

// disinherit ends a handover that its caller no longer waits for.
func (g *Granter) disinherit(req *pb.HandoverRequest) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if s := g.slots[req.Name]; s != nil && s.heir == req.To {
		s.heir = ""
	}
}

// renewed adds to the answer of a renewal who wants the lease.
func (g *Granter) renewed(r *pb.OperationResult, req *pb.RenewRequest) *pb.OperationResult {
	if r.Outcome != pb.Outcome_OUTCOME_DONE || r.Error != nil {
		return r
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if s := g.slots[req.Name]; s.is(req.Owner, req.Token) && s.heir != "" {
		r.Response = &pb.OperationResult_Renew{Renew: &pb.RenewResponse{WantedBy: s.heir}}
	}
	return r
}

// waiting returns the first who waits for s as owner, nil when nobody does.
// Granter.mu is held.
func (s *slot) waiting(owner string) *waiter {
	for _, w := range s.waiters {
		if owner != "" && w.owner == owner {
			return w
		}
	}
	return nil
}
