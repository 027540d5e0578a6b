package granter

import (
	"context"
	"slices"

	"google.golang.org/protobuf/types/known/durationpb"

	pb "github.com/raftlease/raftlease/transport/rpc/raftleasev1"
)

// get and list are linearizable: every change that was acknowledged before the
// call is applied here, those of this term because this leader acknowledged
// them after applying, those of earlier terms because the Epoch entry came after
// them; and the round proves that no later term had begun when it began.

func (g *Granter) get(ctx context.Context, req *pb.GetRequest) *pb.OperationResult {
	if err := g.confirm.join(ctx); err != nil {
		return notLeader()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	l, ok := g.machine.Get(req.Name)
	if !ok {
		return refused(&pb.ErrorDetail{Code: pb.ErrorCode_ERROR_CODE_NOT_FOUND, Name: req.Name})
	}
	return &pb.OperationResult{Outcome: pb.Outcome_OUTCOME_DONE, Response: &pb.OperationResult_Get{
		Get: &pb.GetResponse{Lease: g.record(l), AppliedIndex: g.machine.Index()}}}
}

func (g *Granter) list(ctx context.Context, req *pb.ListRequest) *pb.OperationResult {
	if err := g.confirm.join(ctx); err != nil {
		return notLeader()
	}
	view := g.machine.Snapshot() // not under mu: a long list must hold up nobody
	res := &pb.ListResponse{AppliedIndex: view.Index()}
	for l := range view.All(req.Prefix) {
		res.Leases = append(res.Leases, Record(l))
	}
	for some := range slices.Chunk(res.Leases, listChunk) {
		g.fillRemaining(some)
	}
	return &pb.OperationResult{Outcome: pb.Outcome_OUTCOME_DONE, Response: &pb.OperationResult_List{List: res}}
}

// listChunk is how many leases are looked up under one lock.
const listChunk = 1024

func (g *Granter) fillRemaining(ls []*pb.Lease) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, l := range ls {
		if l.Token != 0 {
			l.Remaining = durationpb.New(g.remaining(l.Name, l.Token))
		}
	}
}
