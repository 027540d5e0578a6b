package memstore

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/raftlease/raftlease/internal/clock"
	"github.com/raftlease/raftlease/lease"
)

var bg = context.Background()

// handClock is a holder's clock that a test sets.
type handClock struct {
	mu sync.Mutex
	at clock.Reading
}

func (c *handClock) Now() clock.Reading {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

// moves advances the two clocks, each by its own.
func (c *handClock) moves(boot, wall time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at.Boot += boot
	c.at.Wall += wall
}

// bubbleClock is a holder's clock on a bubble's virtual time alone.
type bubbleClock struct{}

func (bubbleClock) Now() clock.Reading {
	return clock.Reading{Wall: time.Duration(time.Now().UnixNano())}
}

// inBubble runs a test with a store in virtual time. Close has to end all that
// the store has under way, or the bubble reports it.
func inBubble(t *testing.T, test func(t *testing.T, s *Store)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := open(Config{Holder: bubbleClock{}}, clock.Monotonic())
		defer s.Close()
		test(t, s)
	})
}

func acquire(t testing.TB, s *Store, name, owner string, ttl time.Duration) lease.Grant {
	t.Helper()
	g, err := s.Acquire(bg, name, owner, ttl)
	if err != nil {
		t.Fatalf("acquire %q for %q: %v", name, owner, err)
	}
	return g
}

func renew(t testing.TB, s *Store, g lease.Grant, ttl time.Duration) lease.Grant {
	t.Helper()
	g, err := s.Renew(bg, g, ttl)
	if err != nil {
		t.Fatalf("renew: %v", err)
	}
	return g
}

func release(t testing.TB, s *Store, g lease.Grant) {
	t.Helper()
	if err := s.Release(bg, g); err != nil {
		t.Fatalf("release: %v", err)
	}
}

// remaining returns what a refused owner is told.
func remaining(t testing.TB, s *Store, name string) time.Duration {
	t.Helper()
	_, err := s.Acquire(bg, name, "stranger", time.Second)
	var h *lease.HeldError
	if !errors.As(err, &h) {
		t.Fatalf("acquire %q, which should be held: %v", name, err)
	}
	return h.Remaining
}

// lostBecause checks that g is lost for that reason.
func lostBecause(t testing.TB, s *Store, g lease.Grant, want lease.Reason) *lease.LostError {
	t.Helper()
	_, err := s.Renew(bg, g, time.Minute)
	var l *lease.LostError
	if !errors.As(err, &l) {
		t.Fatalf("renew: %v, want a *lease.LostError", err)
	}
	if l.Reason != want {
		t.Errorf("lost because %q, want %q", l.Reason, want)
	}
	return l
}

// waiting is an AcquireWait under way.
type waiting struct {
	done  chan struct{}
	grant lease.Grant
	err   error
	at    time.Time // of its return
}

// parks starts an AcquireWait and returns when it is parked or done.
func parks(ctx context.Context, s *Store, name, owner string, ttl time.Duration) *waiting {
	w := &waiting{done: make(chan struct{})}
	go func() {
		defer close(w.done)
		w.grant, w.err = s.AcquireWait(ctx, name, owner, ttl)
		w.at = time.Now()
	}()
	synctest.Wait()
	return w
}

func (w *waiting) isDone() bool {
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}
