package granter

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/raftlease/raftlease/internal/clock"
	"github.com/raftlease/raftlease/internal/state"
	"github.com/raftlease/raftlease/lease"
	pb "github.com/raftlease/raftlease/transport/rpc/raftleasev1"
)

const (
	ttl   = 10 * time.Second
	trip  = 4 * time.Millisecond // of a confirm round
	limit = time.Second          // of one
)

// fakeQuorum stands for the voters.
type fakeQuorum struct {
	mu       sync.Mutex
	promised uint64 // highest term a majority promised
	trip     time.Duration
	fail     error
	hold     <-chan struct{} // voters are asked only when this is closed
	deaf     bool            // hold is waited for also when ctx ends
	starts   []time.Time
}

// Confirm asks half a trip after the call.
func (q *fakeQuorum) Confirm(ctx context.Context, term uint64) error {
	q.mu.Lock()
	q.starts = append(q.starts, time.Now())
	half, hold, deaf := q.trip/2, q.hold, q.deaf
	q.mu.Unlock()
	if deaf {
		<-hold
	}
	if hold != nil {
		select {
		case <-hold:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if err := pause(ctx, half); err != nil {
		return err
	}
	q.mu.Lock()
	promised, fail := q.promised, q.fail
	q.mu.Unlock()
	if err := pause(ctx, half); err != nil {
		return err
	}
	if fail == nil && promised > term {
		fail = errUnconfirmed
	}
	return fail
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (q *fakeQuorum) set(f func(*fakeQuorum)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	f(q)
}

func (q *fakeQuorum) rounds() []time.Time {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.starts[:len(q.starts):len(q.starts)]
}

// world is a cluster as one granter sees it.
type world struct {
	testing.TB
	log    *fakeLog
	quorum *fakeQuorum
	clock  clock.Granter // of the next leader
	ended  func(uint64) (lease.Reason, bool)

	mu sync.Mutex
	g  *Granter // who leads
}

// bubble runs f in virtual time with a leader of term 1. The bubble panics when
// a goroutine is left behind.
func bubble(t *testing.T, f func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.lead("n1", 1)
		f(w)
	})
}

func newWorld(t testing.TB) *world {
	return &world{TB: t, log: newFakeLog(t), quorum: &fakeQuorum{trip: trip}, clock: clock.Monotonic()}
}

// lead makes node the leader of term. The granter before it goes on by itself
// until something tells it that it is over, as after a partition.
func (w *world) lead(node string, term uint64) *Granter {
	w.Helper()
	w.quorum.set(func(q *fakeQuorum) { q.promised = term })
	g := w.log.elect(node, term, func() *Granter { return w.build(node, term) })
	w.mu.Lock()
	w.g = g
	w.mu.Unlock()
	return g
}

// build makes a granter that is not told of anything yet.
func (w *world) build(node string, term uint64) *Granter {
	g := New(Config{Term: term, Clock: w.clock, Quorum: w.quorum, Apply: w.log.applier(node), ConfirmLimit: limit, Ended: w.ended})
	w.Cleanup(g.Close)
	return g
}

func (w *world) leader() *Granter {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.g
}

// do carries out one operation at the leader.
func (w *world) do(op any) *pb.OperationResult { return w.doCtx(w.Context(), op) }

func (w *world) doCtx(ctx context.Context, op any) *pb.OperationResult {
	return w.leader().Do(ctx, operation(op))
}

// async carries out one operation and returns where its answer will come.
func (w *world) async(op any) <-chan *pb.OperationResult { return w.asyncCtx(w.Context(), op) }

func (w *world) asyncCtx(ctx context.Context, op any) <-chan *pb.OperationResult {
	c := make(chan *pb.OperationResult, 1)
	go func() { c <- w.doCtx(ctx, op) }()
	return c
}

func operation(op any) *pb.Operation {
	switch o := op.(type) {
	case *pb.Operation:
		return o
	case *pb.AcquireRequest:
		return &pb.Operation{Op: &pb.Operation_Acquire{Acquire: o}}
	case *pb.RenewRequest:
		return &pb.Operation{Op: &pb.Operation_Renew{Renew: o}}
	case *pb.ReleaseRequest:
		return &pb.Operation{Op: &pb.Operation_Release{Release: o}}
	case *pb.PutRequest:
		return &pb.Operation{Op: &pb.Operation_Put{Put: o}}
	case *pb.GetRequest:
		return &pb.Operation{Op: &pb.Operation_Get{Get: o}}
	case *pb.ListRequest:
		return &pb.Operation{Op: &pb.Operation_List{List: o}}
	case *pb.BreakRequest:
		return &pb.Operation{Op: &pb.Operation_Break{Break: o}}
	}
	panic("operation of an unknown type")
}

func acquireOf(name, owner string, ttl time.Duration) *pb.AcquireRequest {
	return &pb.AcquireRequest{Name: name, Owner: owner, Ttl: durationpb.New(ttl)}
}

func waitFor(name, owner string, ttl time.Duration) *pb.AcquireRequest {
	return &pb.AcquireRequest{Name: name, Owner: owner, Ttl: durationpb.New(ttl), Wait: true}
}

func renewOf(name, owner string, token uint64, ttl time.Duration) *pb.RenewRequest {
	return &pb.RenewRequest{Name: name, Owner: owner, Token: token, Ttl: durationpb.New(ttl)}
}

func releaseOf(name, owner string, token uint64) *pb.ReleaseRequest {
	return &pb.ReleaseRequest{Name: name, Owner: owner, Token: token}
}

// got returns the token that an acquire won.
func (w *world) got(r *pb.OperationResult) uint64 {
	w.Helper()
	if r.GetAcquire() == nil {
		w.Fatalf("acquire: got %v, want a grant", r)
	}
	return r.GetAcquire().Token
}

// done checks that an operation succeeded.
func (w *world) done(r *pb.OperationResult) {
	w.Helper()
	if r.Outcome != pb.Outcome_OUTCOME_DONE || r.Error != nil {
		w.Fatalf("got %v, want done", r)
	}
}

// outcome checks an answer that is none.
func (w *world) outcome(r *pb.OperationResult, want pb.Outcome) {
	w.Helper()
	if r.Outcome != want || r.Error != nil || r.Response != nil {
		w.Fatalf("got %v, want %v alone", r, want)
	}
}

// refused checks a refusal and returns it.
func (w *world) refused(r *pb.OperationResult, want pb.ErrorCode) *pb.ErrorDetail {
	w.Helper()
	if r.Outcome != pb.Outcome_OUTCOME_DONE || r.Error.GetCode() != want {
		w.Fatalf("got %v, want %v", r, want)
	}
	return r.Error
}

// pending checks that nothing has been answered, once all is quiet.
func (w *world) pending(c <-chan *pb.OperationResult) {
	w.Helper()
	synctest.Wait()
	select {
	case r := <-c:
		w.Fatalf("got the answer %v, want none yet", r)
	default:
	}
}

// owner returns who holds name in the replicated state.
func (w *world) owner(name string) string {
	l, _ := w.log.machine.Get(name)
	return l.Owner
}

// holds checks who holds name in the replicated state.
func (w *world) holds(name, owner string) {
	w.Helper()
	synctest.Wait()
	if got := w.owner(name); got != owner {
		w.Fatalf("holder of %q: got %q, want %q", name, got, owner)
	}
}

// writes returns how many entries granters have proposed that were applied.
func (w *world) writes() int { return len(w.log.history()) }

// command puts one command into the log from elsewhere, decided in the present
// term.
func (w *world) command(c state.Command) state.Result {
	w.log.mu.Lock()
	defer w.log.mu.Unlock()
	return w.log.append(state.Entry{Term: w.log.term, Commands: []state.Command{c}})[0]
}
