package leasetest

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/raftlease/raftlease/internal/clock"
	"github.com/raftlease/raftlease/lease"
	"github.com/raftlease/raftlease/memstore"
)

// recorder is a testing.TB that keeps what a case says of a store.
type recorder struct {
	testing.TB
	mu              sync.Mutex
	failed, skipped bool
	lines           []string
	cleanups        []func()
}

func (r *recorder) note(failed, skipped bool, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = r.failed || failed
	r.skipped = r.skipped || skipped
	if text != "" {
		r.lines = append(r.lines, text)
	}
}

func (r *recorder) Helper()                   {}
func (r *recorder) Context() context.Context  { return context.Background() }
func (r *recorder) Log(args ...any)           { r.note(false, false, fmt.Sprintln(args...)) }
func (r *recorder) Logf(f string, a ...any)   { r.note(false, false, fmt.Sprintf(f, a...)) }
func (r *recorder) Fail()                     { r.note(true, false, "") }
func (r *recorder) Error(args ...any)         { r.note(true, false, fmt.Sprintln(args...)) }
func (r *recorder) Errorf(f string, a ...any) { r.note(true, false, fmt.Sprintf(f, a...)) }
func (r *recorder) FailNow()                  { r.Fail(); runtime.Goexit() }
func (r *recorder) Fatal(args ...any)         { r.Error(args...); runtime.Goexit() }
func (r *recorder) Fatalf(f string, a ...any) { r.Errorf(f, a...); runtime.Goexit() }
func (r *recorder) SkipNow()                  { r.note(false, true, ""); runtime.Goexit() }
func (r *recorder) Skip(args ...any)          { r.Log(args...); r.SkipNow() }
func (r *recorder) Skipf(f string, a ...any)  { r.Logf(f, a...); r.SkipNow() }

func (r *recorder) Failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}

func (r *recorder) Cleanup(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cleanups = append(r.cleanups, f)
}

func (r *recorder) cleanUp() {
	for i := len(r.cleanups) - 1; i >= 0; i-- {
		r.cleanups[i]()
	}
}

// said returns the first lines of what the case said.
func (r *recorder) said() string {
	return strings.Join(r.lines[:min(len(r.lines), 3)], "\n")
}

// judge runs one case in virtual time and returns what it says.
func judge(t *testing.T, suite Suite, c one) *recorder {
	t.Helper()
	var r *recorder
	synctest.Test(t, func(t *testing.T) {
		r = &recorder{TB: t}
		done := make(chan struct{})
		go func() {
			defer close(done)
			f := suite.fixture(r)
			if missing := c.needs.missing(suite, f.stores[0]); missing != "" {
				r.Skip(missing)
			}
			c.run(f.env(r, 0))
		}()
		<-done
		r.cleanUp()
	})
	return r
}

// caseNamed returns the case with that name.
func caseNamed(t testing.TB, name string) one {
	t.Helper()
	for _, c := range cases() {
		if c.name == name {
			return c
		}
	}
	t.Fatalf("no case is called %q", name)
	return one{}
}

// bubbleClock is a holder's clock on a bubble's virtual time alone.
type bubbleClock struct{}

func (bubbleClock) Now() clock.Reading {
	return clock.Reading{Wall: time.Duration(time.Now().UnixNano())}
}

// inMemory returns a sound store.
func inMemory(t testing.TB) *memstore.Store {
	t.Helper()
	s, err := memstore.Open(memstore.Config{Holder: bubbleClock{}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// hooks replace single verbs of a store. A nil one leaves the sound verb.
type hooks struct {
	acquire   func(ctx context.Context, name, owner string, ttl time.Duration) (lease.Grant, error)
	wait      func(ctx context.Context, name, owner string, ttl time.Duration) (lease.Grant, error)
	renew     func(ctx context.Context, g lease.Grant, ttl time.Duration) (lease.Grant, error)
	release   func(ctx context.Context, g lease.Grant) error
	get       func(ctx context.Context, name string) (lease.Record, error)
	list      func(ctx context.Context, prefix string) ([]lease.Record, error)
	put       func(ctx context.Context, g lease.Grant, data []byte) error
	watch     func(ctx context.Context, prefix string, after uint64, fn func(lease.Event) error) error
	guarantee func() lease.Guarantee
	close     func() error
}

// hooked is a sound store but for its hooks.
type hooked struct {
	*memstore.Store
	hooks
}

func (h *hooked) Acquire(ctx context.Context, name, owner string, ttl time.Duration) (lease.Grant, error) {
	if h.acquire != nil {
		return h.acquire(ctx, name, owner, ttl)
	}
	return h.Store.Acquire(ctx, name, owner, ttl)
}

func (h *hooked) AcquireWait(ctx context.Context, name, owner string, ttl time.Duration) (lease.Grant, error) {
	if h.wait != nil {
		return h.wait(ctx, name, owner, ttl)
	}
	return h.Store.AcquireWait(ctx, name, owner, ttl)
}

func (h *hooked) Renew(ctx context.Context, g lease.Grant, ttl time.Duration) (lease.Grant, error) {
	if h.renew != nil {
		return h.renew(ctx, g, ttl)
	}
	return h.Store.Renew(ctx, g, ttl)
}

func (h *hooked) Release(ctx context.Context, g lease.Grant) error {
	if h.release != nil {
		return h.release(ctx, g)
	}
	return h.Store.Release(ctx, g)
}

func (h *hooked) Get(ctx context.Context, name string) (lease.Record, error) {
	if h.get != nil {
		return h.get(ctx, name)
	}
	return h.Store.Get(ctx, name)
}

func (h *hooked) List(ctx context.Context, prefix string) ([]lease.Record, error) {
	if h.list != nil {
		return h.list(ctx, prefix)
	}
	return h.Store.List(ctx, prefix)
}

func (h *hooked) Put(ctx context.Context, g lease.Grant, data []byte) error {
	if h.put != nil {
		return h.put(ctx, g, data)
	}
	return h.Store.Put(ctx, g, data)
}

func (h *hooked) Watch(ctx context.Context, prefix string, after uint64, fn func(lease.Event) error) error {
	if h.watch != nil {
		return h.watch(ctx, prefix, after, fn)
	}
	return h.Store.Watch(ctx, prefix, after, fn)
}

func (h *hooked) Guarantee() lease.Guarantee {
	if h.guarantee != nil {
		return h.guarantee()
	}
	return h.Store.Guarantee()
}

func (h *hooked) Close() error {
	if h.close != nil {
		return h.close()
	}
	return h.Store.Close()
}
