package lease_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/raftlease/raftlease/lease"
)

// held lets another owner hold x for d.
func held(t testing.TB, s *faulty, d time.Duration) lease.Grant {
	t.Helper()
	g, err := s.Store.Acquire(bg, "x", "other", d)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestRun_WaitsUntilTheNameIsFree(t *testing.T) {
	for _, c := range []struct {
		name string
		poll bool
		late time.Duration // that the job may begin after the release
	}{
		{"a store that can wait", false, 0},
		{"a store that is polled", true, ttl/3*5/4 + 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *faulty) {
				var store lease.Store = s
				if c.poll {
					store = polled{s}
				}
				g := held(t, s, time.Hour)
				var freed time.Time
				time.AfterFunc(10*time.Minute, func() {
					freed = time.Now()
					if err := s.Store.Release(bg, g); err != nil {
						t.Error(err)
					}
				})
				var told events
				err := lease.Run(bg, store, lease.Job{Name: "x", TTL: ttl, Events: told.add}, func(context.Context, lease.Grant) error {
					if d := time.Since(freed); d > c.late {
						t.Errorf("began %v after the release", d)
					}
					return nil
				})
				if err != nil {
					t.Error(err)
				}
				if !c.poll {
					return
				}
				wantKinds(t, &told, lease.HoldWaiting, lease.HoldAcquired, lease.HoldReleased)
				if e, _ := told.first(t, lease.HoldWaiting); !errors.Is(e.Err, lease.ErrHeld) {
					t.Errorf("waiting because %v", e.Err)
				}
				if n := len(told.all); n > 10 {
					t.Errorf("%d events, want one for all the waiting", n)
				}
				if n := s.count("acquire"); n > 200 {
					t.Errorf("asked %d times in 10 minutes", n)
				}
			})
		})
	}
}

// The remaining time guides the polling: soon after it, the job begins.
func TestRun_PollsWhenTheHolderExpires(t *testing.T) {
	inBubble(t, func(t *testing.T, s *faulty) {
		begun := time.Now()
		held(t, s, 2*time.Second)
		err := lease.Run(bg, polled{s}, lease.Job{Name: "x", TTL: time.Minute}, func(context.Context, lease.Grant) error {
			if d := time.Since(begun); d > 3*time.Second {
				t.Errorf("began after %v, the other's ttl being 2s", d)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}

func TestRun_NoWait(t *testing.T) {
	inBubble(t, func(t *testing.T, s *faulty) {
		held(t, s, time.Hour)
		begun := time.Now()
		err := lease.Run(bg, s, lease.Job{Name: "x", TTL: ttl, NoWait: true}, notCalled(t))
		var h *lease.HeldError
		if !errors.As(err, &h) || h.Owner != "other" {
			t.Errorf("%v, want the refusal", err)
		}
		if time.Since(begun) != 0 {
			t.Errorf("took %v", time.Since(begun))
		}
	})
}

func notCalled(t testing.TB) func(context.Context, lease.Grant) error {
	return func(context.Context, lease.Grant) error {
		t.Error("the job began")
		return nil
	}
}

// Case 15: what bounds the acquire does not bound the hold.
func TestRun_MaxWaitDoesNotBoundTheHold(t *testing.T) {
	inBubble(t, func(t *testing.T, s *faulty) {
		err := lease.Run(bg, s, lease.Job{Name: "x", TTL: ttl, MaxWait: time.Second}, func(ctx context.Context, g lease.Grant) error {
			if _, bounded := ctx.Deadline(); bounded {
				t.Error("the job's context has the deadline of the acquire")
			}
			time.Sleep(5 * time.Minute)
			return errors.Join(ctx.Err(), g.Check())
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// When MaxWait is over the error says who has the lease, or that the store was
// not there.
func TestRun_MaxWaitIsOver(t *testing.T) {
	for _, poll := range []bool{false, true} {
		inBubble(t, func(t *testing.T, s *faulty) {
			var store lease.Store = s
			if poll {
				store = polled{s}
			}
			held(t, s, time.Hour)
			begun := time.Now()
			err := lease.Run(bg, store, lease.Job{Name: "x", TTL: ttl, MaxWait: time.Minute}, notCalled(t))
			if !errors.Is(err, lease.ErrHeld) {
				t.Errorf("%v, want that it is held", err)
			}
			if d := time.Since(begun); d != time.Minute {
				t.Errorf("waited %v", d)
			}

			s.sets(func() { s.acquires = fails })
			err = lease.Run(bg, store, lease.Job{Name: "x", TTL: ttl, MaxWait: time.Minute}, notCalled(t))
			if !errors.Is(err, lease.ErrUnavailable) || errors.Is(err, lease.ErrHeld) {
				t.Errorf("%v, want that it is unavailable", err)
			}
			if n := s.count("acquire") + s.count("wait"); n > 150 {
				t.Errorf("%d calls in two minutes", n)
			}
		})
	}
}

// Case 19: whoever gave up waiting gets nothing, and says why it gave up.
func TestRun_WaiterGivesUp(t *testing.T) {
	for _, poll := range []bool{false, true} {
		inBubble(t, func(t *testing.T, s *faulty) {
			var store lease.Store = s
			if poll {
				store = polled{s}
			}
			g := held(t, s, time.Hour)
			why := errors.New("going home")
			ctx, cancel := context.WithCancelCause(bg)
			time.AfterFunc(time.Minute, func() { cancel(why) })
			err := lease.Run(ctx, store, lease.Job{Name: "x", TTL: ttl}, notCalled(t))
			if !errors.Is(err, why) || errors.Is(err, lease.ErrHeld) {
				t.Errorf("%v, want %v", err, why)
			}
			if err := s.Store.Release(bg, g); err != nil {
				t.Error(err)
			}
			isFree(t, s, "x")
		})
	}
}

// Case 16, for an acquire: cancelled while its outcome is unknown, nothing is
// left behind.
func TestRun_CancelledDuringAnAcquire(t *testing.T) {
	for _, poll := range []bool{false, true} {
		inBubble(t, func(t *testing.T, s *faulty) {
			var store lease.Store = s
			if poll {
				store = polled{s}
			}
			ctx, cancel := context.WithCancel(bg)
			s.acquires = func(ctx context.Context, call func(context.Context) (lease.Grant, error)) (lease.Grant, error) {
				if _, err := call(ctx); err != nil {
					t.Error(err)
				}
				s.noCut()
				cancel()
				return lease.Grant{}, errors.Join(lease.ErrUnknownOutcome, context.Canceled)
			}
			err := lease.Run(ctx, store, lease.Job{Name: "x", TTL: ttl}, notCalled(t))
			if !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			isFree(t, s, "x")
		})
	}
}

// Cancelled at the very moment at which the lease was granted, the job does not
// begin.
func TestRun_CancelledWhenGranted(t *testing.T) {
	inBubble(t, func(t *testing.T, s *faulty) {
		ctx, cancel := context.WithCancel(bg)
		s.acquires = func(ctx context.Context, call func(context.Context) (lease.Grant, error)) (lease.Grant, error) {
			g, err := call(ctx)
			cancel()
			return g, err
		}
		if err := lease.Run(ctx, s, lease.Job{Name: "x", TTL: ttl}, notCalled(t)); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		isFree(t, s, "x")
	})
}

func TestRun_ContextEndedBefore(t *testing.T) {
	inBubble(t, func(t *testing.T, s *faulty) {
		ctx, cancel := context.WithCancel(bg)
		cancel()
		for _, disabled := range []bool{false, true} {
			err := lease.Run(ctx, s, lease.Job{Name: "x", Disabled: disabled}, notCalled(t))
			if !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
		if err := lease.RunLoop(ctx, s, lease.Job{Name: "x"}, notCalled(t)); err != nil {
			t.Errorf("loop: %v, want nil", err)
		}
		isFree(t, s, "x")
	})
}

// Input that can never succeed is not retried.
func TestRun_StoreRefusesTheTTL(t *testing.T) {
	inBubble(t, func(t *testing.T, s *faulty) {
		err := lease.Run(bg, s, lease.Job{Name: "x", TTL: 100 * time.Millisecond}, notCalled(t))
		if !errors.Is(err, lease.ErrInvalid) {
			t.Errorf("%v, want that it is invalid", err)
		}
		s.Close()
		err = lease.Run(bg, s, lease.Job{Name: "x"}, notCalled(t))
		if !errors.Is(err, lease.ErrClosed) {
			t.Errorf("%v, want that it is closed", err)
		}
	})
}
