package lease

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"time"
)

// Run acquires the lease of job, runs f while it is held, and releases it after
// f has returned. It blocks until then.
//
// The context that f gets ends when ctx does, when the lease is lost and, with
// some time to stop before, when the store closes (Drainer). context.Cause tells
// which: a *LostError says why the lease is over and, where known, who has it
// now; ErrClosed that the store closes. It ends at the deadline by this process's
// own clock, without a word from the store (G4), and at once when the store
// refuses a renewal. The grant that f gets follows the renewals: its Check, right
// before an act, is right also where a context is late, after a freeze (G4).
//
// f must return soon after its context has ended. Until then the lease is
// renewed, unless it is lost, and is never released, so nobody else begins while
// f still runs; if it is lost, others may begin. When f panics the lease is
// released before the panic goes on.
//
// While waiting, faults of the store are retried (Job.NoWait, Job.MaxWait). The
// error is that of acquiring, the one f returned, or, when the lease was lost
// while f ran, one that is ErrLost, also when f returned nil. A release that does
// not work is no error: the name is free after its ttl, and Job.Events tells.
func Run(ctx context.Context, store Store, job Job, f func(context.Context, Grant) error) error {
	r, err := newRunner(store, job, f)
	if err != nil {
		return err
	}
	defer r.close()
	return r.run(ctx).err
}

// RunLoop runs tenure after tenure, each as Run does, until ctx ends; then it
// returns nil, or the error of f if that is not the one of ctx. After a loss it
// acquires again, whatever f returned. An error of f without a loss ends the
// loop, as does an acquire that is given up (Job.NoWait, Job.MaxWait), and both
// are returned. When the store closes it returns ErrClosed. Every tenure has a
// larger token than the one before.
func RunLoop(ctx context.Context, store Store, job Job, f func(context.Context, Grant) error) error {
	r, err := newRunner(store, job, f)
	if err != nil {
		return err
	}
	defer r.close()
	for {
		end := r.run(ctx)
		switch {
		case ctx.Err() != nil:
			if end.err == nil || !end.began || end.lost ||
				errors.Is(end.err, ctx.Err()) || errors.Is(end.err, context.Cause(ctx)) {
				return nil
			}
			return end.err
		case end.drained && end.err == nil:
			return closing(r.job.Name)
		case end.err != nil && !(end.lost && end.began):
			return end.err
		}
		sleep(ctx, r.job.Pause)
	}
}

// runner runs the tenures of one call.
type runner struct {
	store  Store
	job    Job
	f      func(context.Context, Grant) error
	events *teller
	taken  func()

	above uint64 // the token of the last tenure
}

// end is how a tenure ended.
type end struct {
	err     error
	began   bool // f was called
	lost    bool // while f ran
	drained bool // the store is closing
}

func newRunner(s Store, j Job, f func(context.Context, Grant) error) (*runner, error) {
	if f == nil {
		panic("lease: Run without a function")
	}
	if s == nil && !j.Disabled {
		panic("lease: Run without a store")
	}
	if err := j.Validate(); err != nil {
		return nil, fmt.Errorf("run under lease %q: %w", j.Name, err)
	}
	r := &runner{store: s, job: j.withDefaults(), f: f, events: &teller{tell: j.Events}, taken: func() {}}
	if j.Disabled {
		return r, nil
	}
	if err := j.enough(s); err != nil {
		return nil, fmt.Errorf("run under lease %q: %w", j.Name, err)
	}
	taken, err := occupy(s, r.job)
	if err != nil {
		return nil, fmt.Errorf("run under lease %q: %w", j.Name, err)
	}
	r.taken = taken
	return r, nil
}

func (r *runner) close() {
	r.taken()
	r.events.wait()
}

// run is one tenure.
func (r *runner) run(ctx context.Context) end {
	if r.job.Disabled {
		return r.runFree(ctx)
	}
	drain, release := register(r.store)
	defer release()
	g, err := r.acquire(ctx, drain)
	if err != nil {
		return end{err: err, drained: isClosed(drain)}
	}
	r.above = g.Token
	return r.hold(ctx, g, drain)
}

// acquire also ends when the store is about to close.
func (r *runner) acquire(ctx context.Context, drain <-chan struct{}) (Grant, error) {
	waiting, cancel := context.WithCancelCause(ctx)
	var watch sync.WaitGroup
	if drain != nil {
		if isClosed(drain) {
			cancel(closing(r.job.Name))
		}
		watch.Go(func() {
			select {
			case <-drain:
				cancel(closing(r.job.Name))
			case <-waiting.Done():
			}
		})
	}
	defer watch.Wait()
	defer cancel(nil)
	if waiting.Err() != nil {
		return Grant{}, fmt.Errorf("acquire lease %q: %w", r.job.Name, context.Cause(waiting))
	}
	a := awaiting{store: r.store, job: r.job, events: r.events, above: r.above}
	return a.acquire(waiting)
}

// hold runs f under g. The lease is released in a deferred call, so that a panic
// passes through with its stack.
func (r *runner) hold(ctx context.Context, g Grant, drain <-chan struct{}) (e end) {
	jobCtx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	began := time.Now()
	t := newTenure(g, cancel)
	r.events.event(HoldEvent{Kind: HoldAcquired, Grant: g, Remaining: g.Remaining()})
	k := keep(ctx, r.store, r.job, t, drain, r.events)
	var rest time.Duration
	defer func() { r.giveBack(ctx, t, k, rest) }()

	err := r.f(jobCtx, t.handle())
	t.remaining() // sees whether the deadline has passed
	lost := t.lost()
	sleep(jobCtx, r.job.AtLeast-time.Since(began))
	rest = r.job.AtLeast - time.Since(began)
	return end{
		err: r.outcome(err, lost, drain, ctx), began: true,
		lost: lost != nil, drained: isClosed(drain),
	}
}

// giveBack stops renewing and releases the lease, in this order: a renewal under
// way must not come after the release.
func (r *runner) giveBack(ctx context.Context, t *tenure, k *keeper, rest time.Duration) {
	t.jobDone()
	k.wait()
	g, lost := t.latest(), t.lost()
	told := HoldEvent{Kind: HoldReleased, Grant: g}
	switch {
	case lost == nil && rest > 0:
		told.Remaining = rest
		told.Err = leave(ctx, r.store, r.job, g, rest)
	case lost == nil:
		told.Err = release(ctx, r.store, r.job, g, 0)
	case lost.Reason == ReasonExpired:
		// The store may count longer: for the margin, or because it carried out
		// a renewal whose answer never came.
		told.Err = release(ctx, r.store, r.job, g, 1)
	default:
		return
	}
	r.events.event(told)
}

// outcome is the error of a tenure in which f returned err.
func (r *runner) outcome(err error, lost *LostError, drain <-chan struct{}, ctx context.Context) error {
	switch {
	case lost != nil && err == nil:
		return fmt.Errorf("run under lease %q: %w", r.job.Name, lost)
	case lost != nil && !errors.Is(err, ErrLost):
		return fmt.Errorf("%w; %w", lost, err)
	case isClosed(drain) && ctx.Err() == nil && errors.Is(err, context.Canceled):
		return fmt.Errorf("%w; %w", closing(r.job.Name), err)
	}
	return err
}

// runFree runs f without a lease.
func (r *runner) runFree(ctx context.Context) end {
	if ctx.Err() != nil {
		return end{err: fmt.Errorf("run %q: %w", r.job.Name, context.Cause(ctx))}
	}
	jobCtx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	t := newTenure(Grant{Name: r.job.Name, Owner: r.job.Owner, TTL: r.job.TTL}, cancel)
	t.free = true
	g := t.latest()
	r.events.event(HoldEvent{Kind: HoldAcquired, Grant: g, Remaining: g.TTL})
	defer func() {
		t.jobDone()
		r.events.event(HoldEvent{Kind: HoldReleased, Grant: g})
	}()
	return end{err: r.f(jobCtx, t.handle()), began: true}
}

// running has the leases for which a Run of this process goes on.
var running sync.Map // occupied → true

type occupied struct {
	store       Store
	name, owner string
}

// occupy refuses a second call of this process with the same store, name and
// owner: the store would give both the same grant.
func occupy(s Store, j Job) (leave func(), err error) {
	if !reflect.ValueOf(s).Comparable() {
		return func() {}, nil
	}
	key := occupied{s, j.Name, j.Owner}
	if _, taken := running.LoadOrStore(key, true); taken {
		var f Faults
		f.Add("Owner", j.Owner, fmt.Sprintf("an owner of its own for every call that runs under lease %q at the same time; leave it empty", j.Name))
		return nil, f.Err()
	}
	return func() { running.Delete(key) }, nil
}
