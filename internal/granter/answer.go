package granter

import (
	"errors"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/raftlease/raftlease/internal/state"
	"github.com/raftlease/raftlease/lease"
	pb "github.com/raftlease/raftlease/transport/rpc/raftleasev1"
)

// failed sorts an error of a proposal or a confirm round. What is not known to
// have had no effect is unknown.
func failed(err error) *pb.OperationResult {
	if errors.Is(err, errNotProposed) || errors.Is(err, errUnconfirmed) || errors.Is(err, errOver) {
		return notLeader()
	}
	return unknown()
}

// notLeader is the answer when nothing was done and nothing may be said.
func notLeader() *pb.OperationResult {
	return &pb.OperationResult{Outcome: pb.Outcome_OUTCOME_NOT_LEADER}
}

func unknown() *pb.OperationResult {
	return &pb.OperationResult{Outcome: pb.Outcome_OUTCOME_UNKNOWN}
}

func done() *pb.OperationResult {
	return &pb.OperationResult{Outcome: pb.Outcome_OUTCOME_DONE}
}

func refused(d *pb.ErrorDetail) *pb.OperationResult {
	return &pb.OperationResult{Outcome: pb.Outcome_OUTCOME_DONE, Error: d}
}

// acquired turns the state machine's result of an Acquire into the answer.
// g.mu is held.
func (g *Granter) acquired(w *waiter, r state.Result) *pb.OperationResult {
	switch r.Code {
	case state.OK:
		return w.granted(r.Lease.Token)
	case state.Held:
		return refused(g.held(r.Lease.Name, r.Lease.Owner, r.Lease.Token))
	}
	return refused(rejected(r))
}

// held describes the live grant to somebody who did not get the name. g.mu is
// held.
func (g *Granter) held(name, owner string, token uint64) *pb.ErrorDetail {
	d := &pb.ErrorDetail{Code: pb.ErrorCode_ERROR_CODE_HELD, Name: name, Owner: owner, Token: token}
	d.Remaining = durationpb.New(g.remaining(name, token))
	return d
}

func (g *Granter) remaining(name string, token uint64) time.Duration {
	if s := g.slots[name]; s != nil && s.live && s.token == token {
		return max(s.deadline-g.cfg.Clock(), 0)
	}
	return 0
}

// ended tells why a grant ended, "" when that is not known. g.mu must not be
// held, because this calls out.
func (g *Granter) ended(token uint64) lease.Reason {
	if g.cfg.Ended == nil {
		return ""
	}
	reason, _ := g.cfg.Ended(token)
	return reason
}

// lost describes a grant that is not live and has ended for reason, if that is
// known. g.mu is held.
func (g *Granter) lost(name, owner string, token uint64, reason lease.Reason) *pb.ErrorDetail {
	d := &pb.ErrorDetail{Code: pb.ErrorCode_ERROR_CODE_LOST, Name: name, Owner: owner, Token: token}
	if s := g.slots[name]; s != nil && s.live {
		d.NewOwner, d.NewToken = s.owner, s.token
		if reason == "" || reason == lease.ReasonExpired {
			reason = lease.ReasonTaken
		}
	} else if reason == "" {
		reason = lease.ReasonGone
	}
	d.Reason = string(reason)
	return d
}

func rejected(r state.Result) *pb.ErrorDetail {
	return &pb.ErrorDetail{Code: pb.ErrorCode_ERROR_CODE_INVALID, Faults: []*pb.Fault{{Field: "command", Value: "rejected", Allowed: r.Why}}}
}

// record turns a lease of the state into one of the wire. g.mu is held.
func (g *Granter) record(l state.Lease) *pb.Lease {
	r := Record(l)
	if l.Token != 0 {
		r.Remaining = durationpb.New(g.remaining(l.Name, l.Token))
	}
	return r
}

// Record turns a lease of the state into one of the wire, without the remaining
// time, which only a granter knows.
func Record(l state.Lease) *pb.Lease {
	r := &pb.Lease{
		Name: l.Name, Owner: l.Owner, Token: l.Token, Index: l.Revision,
		Data: l.Data, DataToken: l.DataToken,
	}
	if l.Token != 0 {
		r.Ttl = durationpb.New(l.TTL)
	}
	return r
}
