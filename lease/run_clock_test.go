package lease_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/raftlease/raftlease/lease"
)

// late carries the call out at once and holds the answer back, whatever ctx does.
func late(d time.Duration) through {
	return func(ctx context.Context, call func(context.Context) (lease.Grant, error)) (lease.Grant, error) {
		g, err := call(ctx)
		time.Sleep(d)
		return g, err
	}
}

// Case 3 (G4, rules 6 and 11): the answer to a renewal comes after the deadline
// that it was to move. The job ends at the old one, and nothing revives it.
func TestRun_AnswerToARenewalIsLate(t *testing.T) {
	inBubble(t, func(t *testing.T, s *faulty) {
		var told events
		s.renews = late(ttl * 9 / 10) // its grant is still good for a moment
		begun := time.Now()
		err := lease.Run(bg, s, lease.Job{Name: "x", Owner: "a", TTL: ttl, Events: told.add}, func(ctx context.Context, g lease.Grant) error {
			<-ctx.Done()
			if got, want := time.Since(begun), lease.Shorter(ttl); got != want {
				t.Errorf("stopped after %v, want %v", got, want)
			}
			for range 200 {
				lostBecause(t, g.Check(), lease.ReasonExpired)
				time.Sleep(ttl / 50)
			}
			return nil
		})
		lostBecause(t, err, lease.ReasonExpired)
		wantKinds(t, &told, lease.HoldAcquired, lease.HoldLost, lease.HoldReleased)
		isFree(t, s, "x")
	})
}

// Rule 11: the process freezes while a renewal is under way and wakes with the
// answer in its hands, past the old deadline and before the new one. Nothing has
// seen that deadline pass, and yet it has.
func TestRun_WakesWithTheAnswer(t *testing.T) {
	inBubble(t, func(t *testing.T, s *faulty) {
		var told events
		s.renews = func(ctx context.Context, call func(context.Context) (lease.Grant, error)) (lease.Grant, error) {
			g, err := call(ctx)
			s.clock.jumps(ttl*8/10, 0)
			if err := g.Check(); err != nil {
				t.Errorf("the answer is over, too, which tests nothing: %v", err)
			}
			return g, err
		}
		err := lease.Run(bg, s, lease.Job{Name: "x", TTL: ttl, Events: told.add}, func(ctx context.Context, g lease.Grant) error {
			<-ctx.Done()
			lostBecause(t, context.Cause(ctx), lease.ReasonExpired)
			synctest.Wait()
			return g.Check()
		})
		lostBecause(t, err, lease.ReasonExpired)
		wantKinds(t, &told, lease.HoldAcquired, lease.HoldLost, lease.HoldReleased)
	})
}

// Case 3: the answer to an acquire comes later than the ttl. The job does not
// begin by it.
func TestRun_AnswerToAnAcquireIsLate(t *testing.T) {
	for _, wait := range []bool{false, true} {
		inBubble(t, func(t *testing.T, s *faulty) {
			s.acquires = late(ttl + time.Second)
			time.AfterFunc(ttl/2, s.noCut)
			var store lease.Store = s
			if !wait {
				store = polled{s}
			}
			err := lease.Run(bg, store, lease.Job{Name: "x", TTL: ttl}, func(_ context.Context, g lease.Grant) error {
				if g.Token != 2 {
					t.Errorf("began with token %d, want the one after the late one", g.Token)
				}
				return g.Check()
			})
			if err != nil {
				t.Error(err)
			}
			isFree(t, s, "x")
		})
	}
}

func TestRun_AnswerToTheOnlyAcquireIsLate(t *testing.T) {
	inBubble(t, func(t *testing.T, s *faulty) {
		s.acquires = late(ttl - time.Second) // within the ttl, but not with the margin
		time.AfterFunc(time.Second, s.noCut)
		job := lease.Job{Name: "x", TTL: ttl, Margin: 2 * time.Second, NoWait: true}
		err := lease.Run(bg, s, job, func(context.Context, lease.Grant) error {
			t.Error("the job began")
			return nil
		})
		lostBecause(t, err, lease.ReasonExpired)
		isFree(t, s, "x")
	})
}

// Case 22 (G4, rule 8): suspended, and a wall clock that is set. Timers stand
// still in a suspend: here they do, because the jump takes no virtual time.
func TestRun_ClocksThatJump(t *testing.T) {
	for _, c := range []struct {
		name       string
		boot, wall time.Duration
		lost       bool
	}{
		{"suspended for an hour", time.Hour, time.Hour, true},
		{"suspended, and the wall clock was set back an hour", time.Hour, 0, true},
		{"the wall clock was set forward an hour", 0, time.Hour, true},
		{"the wall clock was set back an hour", 0, -time.Hour, false},
		{"suspended for a moment", 4 * time.Second, 4 * time.Second, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *faulty) {
				err := lease.Run(bg, s, lease.Job{Name: "x", TTL: ttl}, func(ctx context.Context, g lease.Grant) error {
					time.Sleep(time.Minute)
					s.clock.jumps(c.boot, c.wall)
					jumped := time.Now()
					if !c.lost {
						time.Sleep(time.Minute)
						return errors.Join(ctx.Err(), g.Check())
					}
					<-ctx.Done() // before anything called Check
					if d := time.Since(jumped); d > 250*time.Millisecond {
						t.Errorf("the context ended %v after the jump", d)
					}
					s.clock.jumps(-c.boot, -c.wall)
					return g.Check()
				})
				if !c.lost {
					if err != nil {
						t.Error(err)
					}
					return
				}
				lostBecause(t, err, lease.ReasonExpired)
			})
		})
	}
}

// G4: after a freeze the very first Check fails, and ends the context with it.
func TestRun_FirstCheckAfterAFreeze(t *testing.T) {
	inBubble(t, func(t *testing.T, s *faulty) {
		for range 200 {
			err := lease.Run(bg, s, lease.Job{Name: "x", TTL: ttl}, func(ctx context.Context, g lease.Grant) error {
				s.clock.jumps(ttl, 0)
				err := g.Check()
				if err == nil {
					t.Fatal("good after the freeze")
				}
				if ctx.Err() == nil {
					t.Error("the check knows of the loss, and the context does not")
				}
				return err
			})
			lostBecause(t, err, lease.ReasonExpired)
		}
	})
}

// A job that was frozen past the deadline and returns before anything looked has
// run without the lease.
func TestRun_ReturnsAfterAFreeze(t *testing.T) {
	inBubble(t, func(t *testing.T, s *faulty) {
		err := lease.Run(bg, s, lease.Job{Name: "x", TTL: ttl}, func(context.Context, lease.Grant) error {
			s.clock.jumps(ttl, 0)
			return nil
		})
		lostBecause(t, err, lease.ReasonExpired)
	})
}

// Case 21: A freezes, B holds and dies, A wakes: its old work is told that it is
// lost, and its new grant has a token above both.
func TestRunLoop_FreezesAndWakes(t *testing.T) {
	inBubble(t, func(t *testing.T, a *faulty) {
		ctx, cancel := context.WithCancel(bg)
		defer cancel()
		b := a.beside()
		var tokens []uint64
		err := lease.RunLoop(ctx, a, lease.Job{Name: "x", Owner: "a", TTL: ttl}, func(ctx context.Context, g lease.Grant) error {
			tokens = append(tokens, g.Token)
			if len(tokens) > 1 {
				cancel()
				return nil
			}
			a.clock.freezes() // and sends nothing
			a.cut()
			other, err := b.AcquireWait(bg, "x", "b", ttl)
			if err != nil || other.Token != 2 {
				t.Errorf("b: %v, %v", other, err)
			}
			time.Sleep(3 * ttl) // b is dead by now
			a.clock.thaws()
			a.noCut()
			lostBecause(t, g.Check(), lease.ReasonExpired)
			synctest.Wait()
			lostBecause(t, context.Cause(ctx), lease.ReasonExpired)
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		if len(tokens) != 2 || tokens[0] != 1 || tokens[1] != 3 {
			t.Errorf("tokens %v, want 1 and 3", tokens)
		}
	})
}

// A store that takes no notice of its ctx cannot keep the deadline from being
// seen (G4).
func TestRun_RenewalThatHangs(t *testing.T) {
	inBubble(t, func(t *testing.T, s *faulty) {
		free := make(chan struct{})
		s.renews = func(context.Context, func(context.Context) (lease.Grant, error)) (lease.Grant, error) {
			<-free
			return lease.Grant{}, lease.ErrUnknownOutcome
		}
		begun := time.Now()
		err := lease.Run(bg, s, lease.Job{Name: "x", TTL: ttl}, func(ctx context.Context, _ lease.Grant) error {
			<-ctx.Done()
			if got, want := time.Since(begun), lease.Shorter(ttl); got != want {
				t.Errorf("stopped after %v, want %v", got, want)
			}
			close(free)
			return nil
		})
		lostBecause(t, err, lease.ReasonExpired)
	})
}
