package lease_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/raftlease/raftlease/internal/clock"
	"github.com/raftlease/raftlease/lease"
	"github.com/raftlease/raftlease/memstore"
)

const ttl = 10 * time.Second

var (
	bg       = context.Background()
	errCable = errors.New("cable unplugged")
)

// jumpClock is a holder's clock: a bubble's virtual time, plus what a test adds
// to either of the two clocks.
type jumpClock struct {
	mu         sync.Mutex
	boot, wall time.Duration
	stopped    time.Duration // 0 when it runs
}

func (c *jumpClock) Now() clock.Reading {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.stopped
	if now == 0 {
		now = time.Duration(time.Now().UnixNano())
	}
	return clock.Reading{Boot: now + c.boot, Wall: now + c.wall}
}

func (c *jumpClock) jumps(boot, wall time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.boot += boot
	c.wall += wall
}

// freezes stops the clock; thaws sets it right.
func (c *jumpClock) freezes() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = time.Duration(time.Now().UnixNano())
}

func (c *jumpClock) thaws() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = 0
}

// faulty is one process's way to a store. The functions, where set, stand
// between the two; call carries the call out.
type faulty struct {
	*memstore.Store
	clock *jumpClock

	mu       sync.Mutex
	log      []string // of calls begun
	acquires func(ctx context.Context, call func(context.Context) (lease.Grant, error)) (lease.Grant, error)
	renews   func(ctx context.Context, call func(context.Context) (lease.Grant, error)) (lease.Grant, error)
	releases func(ctx context.Context, call func(context.Context) error) error
}

type through = func(ctx context.Context, call func(context.Context) (lease.Grant, error)) (lease.Grant, error)

func (f *faulty) count(what string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(slices.DeleteFunc(slices.Clone(f.log), func(s string) bool { return s != what }))
}

// calls returns how many calls have begun.
func (f *faulty) calls() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.log)
}

func (f *faulty) begins(what string) (acquires, renews through, releases func(context.Context, func(context.Context) error) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.log = append(f.log, what)
	return f.acquires, f.renews, f.releases
}

// sets changes the functions under way.
func (f *faulty) sets(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// own lets the grants of call count on this process's clock.
func (f *faulty) own(call func(context.Context) (lease.Grant, error)) func(context.Context) (lease.Grant, error) {
	return func(ctx context.Context) (lease.Grant, error) {
		anchor, sent := lease.AnchorOn(f.clock), time.Now()
		g, err := call(ctx)
		if err != nil {
			return g, err
		}
		parked := time.Since(sent) // memstore takes no time itself
		return anchor.Grant(g.Name, g.Owner, g.Token, g.TTL, parked), nil
	}
}

func passes(ctx context.Context, by through, call func(context.Context) (lease.Grant, error)) (lease.Grant, error) {
	if by == nil {
		return call(ctx)
	}
	return by(ctx, call)
}

func (f *faulty) Acquire(ctx context.Context, name, owner string, ttl time.Duration) (lease.Grant, error) {
	by, _, _ := f.begins("acquire")
	return passes(ctx, by, f.own(func(ctx context.Context) (lease.Grant, error) {
		return f.Store.Acquire(ctx, name, owner, ttl)
	}))
}

func (f *faulty) AcquireWait(ctx context.Context, name, owner string, ttl time.Duration) (lease.Grant, error) {
	by, _, _ := f.begins("wait")
	return passes(ctx, by, f.own(func(ctx context.Context) (lease.Grant, error) {
		return f.Store.AcquireWait(ctx, name, owner, ttl)
	}))
}

func (f *faulty) Renew(ctx context.Context, g lease.Grant, ttl time.Duration) (lease.Grant, error) {
	_, by, _ := f.begins("renew")
	return passes(ctx, by, f.own(func(ctx context.Context) (lease.Grant, error) {
		return f.Store.Renew(ctx, g, ttl)
	}))
}

func (f *faulty) Release(ctx context.Context, g lease.Grant) error {
	_, _, by := f.begins("release")
	call := func(ctx context.Context) error { return f.Store.Release(ctx, g) }
	if by == nil {
		return call(ctx)
	}
	return by(ctx, call)
}

// polled is a store that cannot wait.
type polled struct{ lease.Store }

// hangs takes no answer until ctx ends.
func hangs(ctx context.Context, _ func(context.Context) (lease.Grant, error)) (lease.Grant, error) {
	<-ctx.Done()
	return lease.Grant{}, errors.Join(lease.ErrUnknownOutcome, context.Cause(ctx))
}

// fails does nothing.
func fails(context.Context, func(context.Context) (lease.Grant, error)) (lease.Grant, error) {
	return lease.Grant{}, errors.Join(lease.ErrUnavailable, errCable)
}

// cut lets no call reach the store, and noCut every one.
func (f *faulty) cut() {
	f.sets(func() {
		f.acquires, f.renews = fails, hangs
		f.releases = func(ctx context.Context, _ func(context.Context) error) error {
			<-ctx.Done()
			return errors.Join(lease.ErrUnknownOutcome, context.Cause(ctx))
		}
	})
}

func (f *faulty) noCut() { f.sets(func() { f.acquires, f.renews, f.releases = nil, nil, nil }) }

// inBubble runs a test in virtual time, with a store and one process's way to
// it. What the code leaves running, the bubble reports.
func inBubble(t *testing.T, test func(t *testing.T, s *faulty)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { withStore(t, test) })
}

// withStore gives test a store of its own, in the bubble that it is called in.
func withStore(t *testing.T, test func(t *testing.T, s *faulty)) {
	t.Helper()
	inner, err := memstore.Open(memstore.Config{Holder: &jumpClock{}})
	if err != nil {
		t.Fatal(err)
	}
	defer inner.Close()
	test(t, &faulty{Store: inner, clock: &jumpClock{}})
}

// beside returns another process's way to the store of f.
func (f *faulty) beside() *faulty { return &faulty{Store: f.Store, clock: &jumpClock{}} }

// events collects what a Job tells.
type events struct {
	mu  sync.Mutex
	all []lease.HoldEvent
	at  []time.Time
}

func (e *events) add(h lease.HoldEvent) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, h)
	e.at = append(e.at, time.Now())
}

// kinds lists the kinds, with repetitions in a row as one.
func (e *events) kinds() []lease.HoldEventKind {
	e.mu.Lock()
	defer e.mu.Unlock()
	var out []lease.HoldEventKind
	for _, h := range e.all {
		out = append(out, h.Kind)
	}
	return slices.Compact(out)
}

// first returns the first event of that kind and when it was told.
func (e *events) first(t testing.TB, kind lease.HoldEventKind) (lease.HoldEvent, time.Time) {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	for i, h := range e.all {
		if h.Kind == kind {
			return h, e.at[i]
		}
	}
	t.Fatalf("no event %q", kind)
	return lease.HoldEvent{}, time.Time{}
}

func wantKinds(t testing.TB, e *events, want ...lease.HoldEventKind) {
	t.Helper()
	if got := e.kinds(); !slices.Equal(got, want) {
		t.Errorf("events %q, want %q", got, want)
	}
}

// isFree checks that the name can be had at once.
func isFree(t testing.TB, s *faulty, name string) {
	t.Helper()
	g, err := s.Store.Acquire(bg, name, "checker", time.Second)
	if err != nil {
		t.Errorf("acquire %q, which should be free: %v", name, err)
		return
	}
	if err := s.Store.Release(bg, g); err != nil {
		t.Error(err)
	}
}

// isHeld checks that the name is held, and returns how.
func isHeld(t testing.TB, s *faulty, name string) *lease.HeldError {
	t.Helper()
	_, err := s.Store.Acquire(bg, name, "checker", time.Second)
	var h *lease.HeldError
	if !errors.As(err, &h) {
		t.Errorf("acquire %q, which should be held: %v", name, err)
		return &lease.HeldError{}
	}
	return h
}

// lostBecause checks that err says so.
func lostBecause(t testing.TB, err error, want lease.Reason) *lease.LostError {
	t.Helper()
	var l *lease.LostError
	if !errors.As(err, &l) {
		t.Errorf("%v, want a *lease.LostError that says %s", err, want)
		return &lease.LostError{}
	}
	if l.Reason != want {
		t.Errorf("lost because %s, want %s", l.Reason, want)
	}
	return l
}

// untilEnd is a job that works until its context ends.
func untilEnd(ctx context.Context, _ lease.Grant) error {
	<-ctx.Done()
	return ctx.Err()
}
