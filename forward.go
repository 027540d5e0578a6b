package raftlease

import (
	"context"
	"sync"
	"time"

	"github.com/raftlease/raftlease/transport/rpc"
	pb "github.com/raftlease/raftlease/transport/rpc/raftleasev1"
)

// Bounds of what is on its way to the leader.
const (
	maxForwardOps     = 512
	maxForwardBytes   = 1 << 20
	maxForwardFlights = 4
	forwardTimeout    = 5 * time.Second
)

func notLeader() *pb.OperationResult {
	return &pb.OperationResult{Outcome: pb.Outcome_OUTCOME_NOT_LEADER}
}

func unknownOutcome() *pb.OperationResult {
	return &pb.OperationResult{Outcome: pb.Outcome_OUTCOME_UNKNOWN}
}

// once carries out op one time: by the granter of this node while it leads, else
// by the leader's.
func (m *member) once(ctx context.Context, op *pb.Operation) *pb.OperationResult {
	if m.serving() != nil {
		return m.here(ctx, op)
	}
	return m.forward.do(ctx, op)
}

// here carries out op if this node leads.
func (m *member) here(ctx context.Context, op *pb.Operation) *pb.OperationResult {
	g := m.serving()
	switch {
	case g == nil:
		return notLeader()
	case changesMembers(op):
		return m.changeMembers(ctx, op)
	}
	return g.Do(ctx, op)
}

// alone reports whether op needs a message of its own, because it may take long
// or its answer may be large.
func alone(op *pb.Operation) bool {
	switch o := op.Op.(type) {
	case *pb.Operation_Acquire:
		return o.Acquire.GetWait()
	case *pb.Operation_List, *pb.Operation_Handover:
		return true
	}
	return changesMembers(op)
}

// forwarder carries operations to the leader, many to one message: what comes
// while messages are under way gathers into the next. Safe for concurrent use.
type forwarder struct {
	m *member

	mu      sync.Mutex
	queue   []*call
	flights int
	closed  bool
}

// call is one operation on its way.
type call struct {
	op     *pb.Operation
	answer chan *pb.OperationResult // capacity 1
	left   bool                     // the queue: sent or given up; guarded by forwarder.mu
}

// do carries op to the leader and waits for the answer, or for ctx.
func (f *forwarder) do(ctx context.Context, op *pb.Operation) *pb.OperationResult {
	if alone(op) {
		r := f.send(ctx, []*pb.Operation{op})[0]
		if r.Outcome == pb.Outcome_OUTCOME_UNKNOWN && op.WaitId != 0 && ctx.Err() != nil {
			f.abandon(op)
		}
		return r
	}
	c := &call{op: op, answer: make(chan *pb.OperationResult, 1)}
	if !f.enqueue(c) {
		return notLeader()
	}
	select {
	case r := <-c.answer:
		return r
	case <-ctx.Done():
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !c.left {
		c.left = true
		return notLeader()
	}
	return unknownOutcome()
}

// abandon tells the leader that nobody waits any more for the answer to a
// waiting acquire: it may be on its way. It does not wait.
func (f *forwarder) abandon(op *pb.Operation) {
	f.enqueue(&call{
		op: &pb.Operation{Op: &pb.Operation_Abandon{Abandon: &pb.AbandonWait{
			Name: op.GetAcquire().GetName(), WaitId: op.WaitId}}},
		answer: make(chan *pb.OperationResult, 1),
	})
}

func (f *forwarder) enqueue(c *call) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return false
	}
	f.queue = append(f.queue, c)
	if f.flights < maxForwardFlights {
		f.flights++
		f.m.wg.Go(f.fly)
	}
	return true
}

// close takes no more operations; those under way end with the member.
func (f *forwarder) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
}

// fly sends what has gathered until nothing is left.
func (f *forwarder) fly() {
	for {
		batch := f.take()
		if len(batch) == 0 {
			return
		}
		ops := make([]*pb.Operation, len(batch))
		for i, c := range batch {
			ops[i] = c.op
		}
		ctx, cancel := context.WithTimeout(f.m.ctx, forwardTimeout)
		results := f.send(ctx, ops)
		cancel()
		for i, c := range batch {
			c.answer <- results[i]
		}
	}
}

// take returns the next batch. An empty one ends the flight.
func (f *forwarder) take() []*call {
	f.mu.Lock()
	defer f.mu.Unlock()
	var batch []*call
	n, bytes := 0, 0
	for ; n < len(f.queue) && len(batch) < maxForwardOps && bytes < maxForwardBytes; n++ {
		if c := f.queue[n]; !c.left {
			c.left = true
			batch = append(batch, c)
			bytes += len(c.op.GetPut().GetData())
		}
	}
	f.queue = f.queue[n:]
	if len(batch) == 0 {
		f.queue = nil
		f.flights--
	}
	return batch
}

// send takes operations to the leader in one message and returns a result for
// each. It gives up when ctx ends or another leader is known.
func (f *forwarder) send(ctx context.Context, ops []*pb.Operation) []*pb.OperationResult {
	leader, reign := f.m.leader()
	addr, ok := f.m.address(leader)
	if !ok || leader == f.m.n.cfg.ID {
		return each(ops, notLeader)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(reign, cancel)()
	res, err := f.m.n.clients.Peer(addr).Submit(ctx, &pb.SubmitRequest{
		ClusterId: f.m.cluster, From: f.m.n.cfg.ID, To: leader, Operations: ops,
	})
	switch {
	case err != nil && (rpc.NotSent(err) || rpc.Detail(err) != nil):
		return each(ops, notLeader) // it never arrived, or was refused as a whole
	case err != nil || len(res.Results) != len(ops):
		f.m.n.log.Debug("forward to the leader", "leader", leader, "err", err)
		return each(ops, unknownOutcome)
	}
	return res.Results
}

func each(ops []*pb.Operation, result func() *pb.OperationResult) []*pb.OperationResult {
	rs := make([]*pb.OperationResult, len(ops))
	for i := range rs {
		rs[i] = result()
	}
	return rs
}
