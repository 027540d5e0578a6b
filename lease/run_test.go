package lease_test

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/raftlease/raftlease/lease"
)

// A job gets what it asked for, for as long as it runs, and no longer.
func TestRun_HoldsWhileTheJobRuns(t *testing.T) {
	inBubble(t, func(t *testing.T, s *faulty) {
		var told events
		began := false
		err := lease.Run(bg, s, lease.Job{Name: "x", Owner: "a", TTL: ttl, Events: told.add},
			func(ctx context.Context, g lease.Grant) error {
				began = true
				if g.Name != "x" || g.Owner != "a" || g.Token != 1 || g.TTL != ttl {
					t.Errorf("grant %+v", g)
				}
				for range 10 {
					time.Sleep(time.Minute)
					if err := errors.Join(g.Check(), ctx.Err()); err != nil {
						t.Fatalf("after some minutes: %v", err)
					}
					if left := g.Remaining(); left < ttl/2 || left > ttl {
						t.Errorf("%v remain", left)
					}
					if until := time.Until(g.Deadline()); until != g.Remaining() {
						t.Errorf("the deadline is in %v, and %v remain", until, g.Remaining())
					}
					if h := isHeld(t, s, "x"); h.Owner != "a" || h.Token != 1 {
						t.Errorf("held by %q with token %d", h.Owner, h.Token)
					}
				}
				return nil
			})
		if err != nil || !began {
			t.Errorf("run: %v, began: %v", err, began)
		}
		isFree(t, s, "x")
		wantKinds(t, &told, lease.HoldAcquired, lease.HoldRenewed, lease.HoldReleased)
		for _, kind := range []lease.HoldEventKind{lease.HoldAcquired, lease.HoldRenewed} {
			if e, _ := told.first(t, kind); e.Remaining != lease.Shorter(ttl) {
				t.Errorf("%s with %v remaining", kind, e.Remaining)
			}
		}
		if e, _ := told.first(t, lease.HoldReleased); e.Err != nil || e.Remaining != 0 {
			t.Errorf("released: %+v", e)
		}
		// Every third of a ttl, or up to a fifth earlier.
		if n := s.count("renew"); n < 600*3/10 || n > 600*3/10*5/4+2 {
			t.Errorf("%d renewals in ten minutes", n)
		}
	})
}

func TestRun_ReturnsTheErrorOfTheJob(t *testing.T) {
	inBubble(t, func(t *testing.T, s *faulty) {
		var kept lease.Grant
		err := lease.Run(bg, s, lease.Job{Name: "x", TTL: ttl}, func(_ context.Context, g lease.Grant) error {
			kept = g
			return errCable
		})
		if err != errCable {
			t.Errorf("%v, want the error of the job", err)
		}
		isFree(t, s, "x")
		lostBecause(t, kept.Check(), lease.ReasonReleased)
		if kept.Remaining() != 0 {
			t.Errorf("%v remain of a released grant", kept.Remaining())
		}
	})
}

// Case 13 (G4): the loss comes from the local clock, at the nanosecond, with the
// reason, whatever is asked first.
func TestRun_StoreIsCutOff(t *testing.T) {
	for _, margin := range []time.Duration{0, 3 * time.Second} {
		inBubble(t, func(t *testing.T, s *faulty) {
			var told events
			job := lease.Job{Name: "x", Owner: "a", TTL: ttl, Margin: margin, Events: told.add}
			var sent, stopped time.Time
			s.renews = func(ctx context.Context, call func(context.Context) (lease.Grant, error)) (lease.Grant, error) {
				sent = time.Now()
				return call(ctx)
			}
			err := lease.Run(bg, s, job, func(ctx context.Context, g lease.Grant) error {
				if got, want := g.Remaining(), lease.Shorter(ttl)-margin; got != want {
					t.Errorf("begins with %v remaining, want %v", got, want)
				}
				time.Sleep(time.Minute)
				s.cut()
				s.sets(func() {
					s.renews = func(ctx context.Context, call func(context.Context) (lease.Grant, error)) (lease.Grant, error) {
						if until, ok := ctx.Deadline(); !ok || until.After(time.Now().Add(g.Remaining())) {
							t.Errorf("a renewal may take until %v, which is past the deadline", until)
						}
						return hangs(ctx, call)
					}
				})
				<-ctx.Done()
				stopped = time.Now()
				lostBecause(t, context.Cause(ctx), lease.ReasonExpired)
				lostBecause(t, g.Check(), lease.ReasonExpired)
				return nil
			})
			lostBecause(t, err, lease.ReasonExpired)
			if want := `run under lease "x": lease "x" of owner "a" with token 1 is lost: expired`; err == nil || err.Error() != want {
				t.Errorf("%v, want %s", err, want)
			}
			if got, want := stopped.Sub(sent), lease.Shorter(ttl)-margin; got != want {
				t.Errorf("stopped %v after the last renewal was sent, want %v", got, want)
			}
			if d := time.Since(stopped); d > ttl/5 {
				t.Errorf("tried to release for %v what had expired", d)
			}
			wantKinds(t, &told, lease.HoldAcquired, lease.HoldRenewed, lease.HoldJeopardy, lease.HoldLost, lease.HoldReleased)
			e, at := told.first(t, lease.HoldJeopardy)
			if got, want := e.Remaining, stopped.Sub(at); got != want || !errors.Is(e.Err, lease.ErrUnknownOutcome) {
				t.Errorf("in jeopardy with %v left because %v, and it ends in %v", got, e.Err, want)
			}
			if _, at := told.first(t, lease.HoldLost); !at.Equal(stopped) {
				t.Errorf("told of the loss %v after it", at.Sub(stopped))
			}
		})
	}
}

// Case 14: one renewal fails, and the hold goes on.
func TestRun_OneRenewalFails(t *testing.T) {
	for _, fault := range []struct {
		name string
		by   through
	}{
		{"not done", fails},
		{"unknown", hangs},
		{"an error of another kind", func(context.Context, func(context.Context) (lease.Grant, error)) (lease.Grant, error) {
			return lease.Grant{}, errCable
		}},
		{"the answer of another grant", func(ctx context.Context, call func(context.Context) (lease.Grant, error)) (lease.Grant, error) {
			g, err := call(ctx)
			g.Token++
			return g, err
		}},
		{"an answer with an earlier deadline", func(ctx context.Context, call func(context.Context) (lease.Grant, error)) (lease.Grant, error) {
			g, err := call(ctx)
			return g.WithMargin(ttl - 2*time.Second), err
		}},
	} {
		t.Run(fault.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *faulty) {
				var told events
				var now atomic.Pointer[lease.Grant]
				n := 0
				s.renews = func(ctx context.Context, call func(context.Context) (lease.Grant, error)) (lease.Grant, error) {
					if n++; n == 3 {
						return fault.by(ctx, call)
					}
					if left := now.Load().Remaining(); n > 4 && left < ttl/2 {
						t.Errorf("renewal %d comes with %v left, want that all is as before", n, left)
					}
					return call(ctx)
				}
				err := lease.Run(bg, s, lease.Job{Name: "x", TTL: ttl, Events: told.add}, func(ctx context.Context, g lease.Grant) error {
					now.Store(&g)
					time.Sleep(time.Minute)
					return errors.Join(ctx.Err(), g.Check())
				})
				if err != nil {
					t.Error(err)
				}
				wantKinds(t, &told, lease.HoldAcquired, lease.HoldRenewed, lease.HoldJeopardy, lease.HoldRenewed, lease.HoldReleased)
			})
		})
	}
}

// Case 4: a store that has no leader for a while loses nobody.
func TestRun_RenewalsRetryThroughAnElection(t *testing.T) {
	inBubble(t, func(t *testing.T, s *faulty) {
		err := lease.Run(bg, s, lease.Job{Name: "x", TTL: ttl}, func(ctx context.Context, g lease.Grant) error {
			for range 20 {
				s.sets(func() { s.renews = fails })
				time.Sleep(5 * time.Second)
				s.noCut()
				time.Sleep(3 * time.Second)
				if err := errors.Join(ctx.Err(), g.Check()); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// A store that fails for long is not asked in a tight loop, and yet soon enough;
// and soon again when it fails again later.
func TestRun_RenewalsBackOff(t *testing.T) {
	inBubble(t, func(t *testing.T, s *faulty) {
		var at []time.Time
		s.renews = func(ctx context.Context, call func(context.Context) (lease.Grant, error)) (lease.Grant, error) {
			if at = append(at, time.Now()); len(at) == 9 {
				return call(ctx)
			}
			return fails(ctx, call)
		}
		err := lease.Run(bg, s, lease.Job{Name: "x", TTL: time.Minute}, untilEnd)
		lostBecause(t, err, lease.ReasonExpired)
		if n := len(at); n < 17 || n > 50 {
			t.Fatalf("%d renewals", n)
		}
		for _, first := range []int{0, 9} {
			if d := at[first+1].Sub(at[first]); d > 100*time.Millisecond {
				t.Errorf("renewal %d comes %v after the one that did not work", first+1, d)
			}
			if d := at[first+7].Sub(at[first+6]); d < time.Second {
				t.Errorf("renewal %d comes %v after seven that did not work", first+7, d)
			}
		}
	})
}

// A copy with a margin of its own is a value like every other grant.
func TestRun_GrantWithMargin(t *testing.T) {
	inBubble(t, func(t *testing.T, s *faulty) {
		err := lease.Run(bg, s, lease.Job{Name: "x", TTL: ttl}, func(_ context.Context, g lease.Grant) error {
			early := g.WithMargin(time.Second)
			if got, want := early.Remaining(), g.Remaining()-time.Second; got != want {
				t.Errorf("%v remain, want %v", got, want)
			}
			time.Sleep(ttl)
			lostBecause(t, early.Check(), lease.ReasonExpired)
			if _, err := s.Break(bg, "x"); err != nil {
				t.Error(err)
			}
			time.Sleep(ttl / 2)
			lostBecause(t, g.Check(), lease.ReasonBroken)
			if left := g.WithMargin(0).Remaining(); left != 0 {
				t.Errorf("%v remain in a copy of a lost grant", left)
			}
			return g.Check()
		})
		lostBecause(t, err, lease.ReasonBroken)
	})
}

// A refusal ends the hold at once and says who has the name now.
func TestRun_RefusedRenewal(t *testing.T) {
	inBubble(t, func(t *testing.T, s *faulty) {
		var told events
		var kept lease.Grant
		begun := time.Now()
		err := lease.Run(bg, s, lease.Job{Name: "x", Owner: "a", TTL: ttl, Events: told.add}, func(ctx context.Context, g lease.Grant) error {
			kept = g
			if _, err := s.Break(bg, "x"); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Store.Acquire(bg, "x", "b", ttl); err != nil {
				t.Fatal(err)
			}
			<-ctx.Done()
			if err := g.Check(); err == nil {
				t.Error("the context has ended, and the check is good")
			}
			return context.Cause(ctx)
		})
		l := lostBecause(t, err, lease.ReasonTaken)
		if want := (lease.LostError{Name: "x", Owner: "a", Token: 1, Reason: lease.ReasonTaken, NewOwner: "b", NewToken: 2}); *l != want {
			t.Errorf("lost: %+v, want %+v", *l, want)
		}
		if d := time.Since(begun); d > ttl/3 {
			t.Errorf("stopped after %v, want at the first renewal", d)
		}
		wantKinds(t, &told, lease.HoldAcquired, lease.HoldLost)
		lostBecause(t, kept.Check(), lease.ReasonTaken)
		if n := s.count("release"); n != 0 {
			t.Errorf("%d releases of a grant that is another's", n)
		}
		isHeld(t, s, "x")
	})
}

func TestRun_BrokenByAnOperator(t *testing.T) {
	inBubble(t, func(t *testing.T, s *faulty) {
		err := lease.Run(bg, s, lease.Job{Name: "x", TTL: ttl}, func(ctx context.Context, g lease.Grant) error {
			if _, err := s.Break(bg, "x"); err != nil {
				t.Fatal(err)
			}
			return untilEnd(ctx, g)
		})
		lostBecause(t, err, lease.ReasonBroken)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%v, want that it is also what the job returned", err)
		}
	})
}

func TestRun_StoreWasClosed(t *testing.T) {
	inBubble(t, func(t *testing.T, s *faulty) {
		err := lease.Run(bg, s, lease.Job{Name: "x", TTL: ttl}, func(ctx context.Context, _ lease.Grant) error {
			s.Close()
			<-ctx.Done()
			return nil
		})
		lostBecause(t, err, lease.ReasonClosed)
	})
}

// Case 17: a slow job keeps the lease through the shutdown, until it returned.
func TestRun_SlowJobOnShutdown(t *testing.T) {
	inBubble(t, func(t *testing.T, s *faulty) {
		ctx, cancel := context.WithCancel(bg)
		var returned time.Time
		var releasedAt time.Time
		s.releases = func(ctx context.Context, call func(context.Context) error) error {
			releasedAt = time.Now()
			if err := ctx.Err(); err != nil {
				t.Errorf("the release's context has ended: %v", err)
			}
			return call(ctx)
		}
		err := lease.Run(ctx, s, lease.Job{Name: "x", Owner: "a", TTL: ttl}, func(ctx context.Context, g lease.Grant) error {
			time.AfterFunc(time.Second, cancel)
			<-ctx.Done()
			for range 10 {
				time.Sleep(ttl)
				if err := g.Check(); err != nil {
					t.Errorf("while stopping: %v", err)
				}
				isHeld(t, s, "x")
			}
			returned = time.Now()
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		if !releasedAt.Equal(returned) {
			t.Errorf("released %v after the job returned", releasedAt.Sub(returned))
		}
		isFree(t, s, "x")
	})
}

// Case 16: cancelled during a renewal, the lease is really free at once.
func TestRun_CancelledDuringARenewal(t *testing.T) {
	for _, done := range []bool{false, true} {
		inBubble(t, func(t *testing.T, s *faulty) {
			ctx, cancel := context.WithCancel(bg)
			var slow time.Duration
			var under atomic.Bool
			s.renews = func(ctx context.Context, call func(context.Context) (lease.Grant, error)) (lease.Grant, error) {
				under.Store(true)
				defer under.Store(false)
				cancel()
				<-ctx.Done() // which must not wait for a timeout
				if !done {
					return lease.Grant{}, lease.ErrUnknownOutcome
				}
				time.Sleep(slow)
				return call(context.WithoutCancel(ctx)) // it arrives at the store after all
			}
			s.releases = func(ctx context.Context, call func(context.Context) error) error {
				if under.Load() {
					t.Error("released while a renewal was under way")
				}
				return call(ctx)
			}
			if done {
				slow = time.Second
			}
			var at time.Time
			err := lease.Run(ctx, s, lease.Job{Name: "x", TTL: ttl}, func(ctx context.Context, g lease.Grant) error {
				defer func() { at = time.Now() }()
				return untilEnd(ctx, g)
			})
			if !errors.Is(err, context.Canceled) || errors.Is(err, lease.ErrLost) {
				t.Errorf("%v, want that it was cancelled", err)
			}
			if d := time.Since(at); d != slow {
				t.Errorf("returned %v after the job", d)
			}
			isFree(t, s, "x")
		})
	}
}

// A release that does not work at first is repeated; one that never does is told
// and bounded, and is no error of the job.
func TestRun_ReleaseFails(t *testing.T) {
	inBubble(t, func(t *testing.T, s *faulty) {
		n := 0
		s.releases = func(ctx context.Context, call func(context.Context) error) error {
			if n++; n < 4 {
				return lease.ErrUnavailable
			}
			return call(ctx)
		}
		var told events
		job := lease.Job{Name: "x", TTL: ttl, Events: told.add}
		nothing := func(context.Context, lease.Grant) error { return nil }
		if err := lease.Run(bg, s, job, nothing); err != nil {
			t.Error(err)
		}
		isFree(t, s, "x")
		if e, _ := told.first(t, lease.HoldReleased); e.Err != nil {
			t.Errorf("released: %v", e.Err)
		}

		s.releases = func(context.Context, func(context.Context) error) error { return lease.ErrUnavailable }
		told = events{}
		begun := time.Now()
		if err := lease.Run(bg, s, job, nothing); err != nil {
			t.Error(err)
		}
		if d := time.Since(begun); d > 5*time.Second {
			t.Errorf("tried for %v", d)
		}
		if e, _ := told.first(t, lease.HoldReleased); !errors.Is(e.Err, lease.ErrUnavailable) {
			t.Errorf("released: %v, want why it was not", e.Err)
		}
	})
}

// Case 20: a job that returns or panics or ends its goroutine is renewed no more.
func TestRun_RenewingStops(t *testing.T) {
	for _, c := range []struct {
		name string
		ends func()
	}{
		{"return", func() {}},
		{"panic", func() { panic("boom") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *faulty) {
				func() {
					defer func() {
						if r := recover(); (r != nil) != (c.name == "panic") || r != nil && r != "boom" {
							t.Errorf("recovered %v", r)
						}
						isFree(t, s, "x") // before the panic goes on
					}()
					_ = lease.Run(bg, s, lease.Job{Name: "x", TTL: ttl, AtLeast: 5 * time.Second}, func(context.Context, lease.Grant) error {
						time.Sleep(4 * time.Second)
						c.ends()
						return nil
					})
				}()
				renewals := s.count("renew")
				if renewals == 0 {
					t.Error("never renewed")
				}
				time.Sleep(time.Hour)
				if n := s.count("renew"); n != renewals {
					t.Errorf("%d renewals after the end", n-renewals)
				}
			})
		})
	}
}

func TestRun_JobThatEndsItsGoroutine(t *testing.T) {
	inBubble(t, func(t *testing.T, s *faulty) {
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = lease.Run(bg, s, lease.Job{Name: "x", TTL: ttl}, func(context.Context, lease.Grant) error {
				runtime.Goexit()
				return nil
			})
		}()
		<-done
		synctest.Wait()
		isFree(t, s, "x")
	})
}
