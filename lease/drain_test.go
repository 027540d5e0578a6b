package lease_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/raftlease/raftlease/lease"
)

// draining is a store that lets jobs stop before it closes.
type draining struct {
	*faulty
	drain chan struct{}

	counting sync.Mutex
	closing  bool
	held     sync.WaitGroup
}

func newDraining(s *faulty) *draining { return &draining{faulty: s, drain: make(chan struct{})} }

func (d *draining) Hold() (<-chan struct{}, func()) {
	d.counting.Lock()
	defer d.counting.Unlock()
	if d.closing {
		return d.drain, func() {}
	}
	d.held.Add(1)
	return d.drain, d.held.Done
}

// closes is what a Node does: it closes the store when the jobs have returned.
func (d *draining) closes() {
	d.counting.Lock()
	d.closing = true
	close(d.drain)
	d.counting.Unlock()
	d.held.Wait()
	d.Close()
}

func TestRun_StoreDrains(t *testing.T) {
	inBubble(t, func(t *testing.T, s *faulty) {
		d := newDraining(s)
		err := lease.Run(bg, d, lease.Job{Name: "x", TTL: ttl}, func(ctx context.Context, g lease.Grant) error {
			time.Sleep(time.Second)
			go d.closes()
			<-ctx.Done()
			if cause := context.Cause(ctx); !errors.Is(cause, lease.ErrClosed) || errors.Is(cause, lease.ErrLost) {
				t.Errorf("cause %v, want that the store closes and that nothing is lost", cause)
			}
			for range 5 { // it takes its time to stop, and still has the lease
				time.Sleep(ttl)
				if err := g.Check(); err != nil {
					t.Error(err)
				}
				isHeld(t, s, "x")
			}
			return ctx.Err()
		})
		if !errors.Is(err, lease.ErrClosed) {
			t.Errorf("%v, want that the store closes", err)
		}
		if n := s.count("release"); n != 1 {
			t.Errorf("%d releases, want one before the store was closed", n)
		}
		d.held.Wait()
	})
}

func TestRun_StoreDrainsWhileWaiting(t *testing.T) {
	for _, before := range []time.Duration{0, time.Second} {
		inBubble(t, func(t *testing.T, s *faulty) {
			d := newDraining(s)
			held(t, s, time.Hour)
			if before == 0 {
				d.closes()
			} else {
				time.AfterFunc(before, d.closes)
			}
			begun := time.Now()
			for _, run := range []func() error{
				func() error { return lease.Run(bg, d, lease.Job{Name: "x", TTL: ttl}, notCalled(t)) },
				func() error { return lease.RunLoop(bg, d, lease.Job{Name: "x", TTL: ttl}, notCalled(t)) },
			} {
				if err := run(); !errors.Is(err, lease.ErrClosed) {
					t.Errorf("%v, want that the store closes", err)
				}
			}
			if got := time.Since(begun); got != before {
				t.Errorf("returned after %v, want %v", got, before)
			}
			d.held.Wait()
		})
	}
}

// The loop ends with the store, also when the job returns nil when it is told to.
func TestRunLoop_StoreDrains(t *testing.T) {
	for _, returns := range []error{nil, context.Canceled, errCable} {
		inBubble(t, func(t *testing.T, s *faulty) {
			d := newDraining(s)
			time.AfterFunc(time.Minute, d.closes)
			begun := time.Now()
			err := lease.RunLoop(bg, d, lease.Job{Name: "x", TTL: ttl}, func(ctx context.Context, _ lease.Grant) error {
				<-ctx.Done()
				return returns
			})
			want := lease.ErrClosed
			if returns == errCable {
				want = errCable
			}
			if !errors.Is(err, want) {
				t.Errorf("job returned %v: %v, want %v", returns, err, want)
			}
			if d := time.Since(begun); d != time.Minute {
				t.Errorf("returned after %v, want when the store closed", d)
			}
		})
	}
}

func TestRunLoop_GoesOnAfterALoss(t *testing.T) {
	inBubble(t, func(t *testing.T, s *faulty) {
		ctx, cancel := context.WithCancel(bg)
		defer cancel()
		var told events
		var last uint64
		n := 0
		job := lease.Job{Name: "x", Owner: "a", TTL: ttl, Events: told.add}
		err := lease.RunLoop(ctx, s, job, func(ctx context.Context, g lease.Grant) error {
			if g.Token <= last {
				t.Errorf("token %d after %d (G2)", g.Token, last)
			}
			last = g.Token
			switch n++; n {
			case 1:
				if _, err := s.Break(bg, "x"); err != nil {
					t.Error(err)
				}
				<-ctx.Done()
				return errCable
			case 2:
				s.cut()
				time.AfterFunc(time.Minute, s.noCut)
				<-ctx.Done()
				return nil
			case 3:
				return nil // and begins again
			}
			cancel()
			return ctx.Err()
		})
		if err != nil || n != 4 {
			t.Errorf("%v after %d tenures", err, n)
		}
		isFree(t, s, "x")
	})
}

// Rule 11: a renewal whose answer came too late is still the store's grant. The
// next tenure does not take it for its own.
func TestRunLoop_NeverComesBackToALostToken(t *testing.T) {
	inBubble(t, func(t *testing.T, s *faulty) {
		ctx, cancel := context.WithCancel(bg)
		defer cancel()
		var tokens []uint64
		job := lease.Job{Name: "x", Owner: "a", TTL: ttl, ReleaseTimeout: time.Second}
		err := lease.RunLoop(ctx, s, job, func(ctx context.Context, g lease.Grant) error {
			tokens = append(tokens, g.Token)
			if len(tokens) > 1 {
				cancel()
				return nil
			}
			s.clock.jumps(ttl, 0) // the store knows nothing of it
			s.releases = func(ctx context.Context, call func(context.Context) error) error {
				s.releases = nil
				return lease.ErrUnavailable
			}
			<-ctx.Done()
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		if len(tokens) != 2 || tokens[1] <= tokens[0] {
			t.Errorf("tokens %v, want a larger one after the loss", tokens)
		}
	})
}

func TestRunLoop_ReturnsTheErrorOfTheJob(t *testing.T) {
	inBubble(t, func(t *testing.T, s *faulty) {
		n := 0
		err := lease.RunLoop(bg, s, lease.Job{Name: "x", TTL: ttl}, func(context.Context, lease.Grant) error {
			if n++; n == 3 {
				return fmt.Errorf("third time: %w", errCable)
			}
			return nil
		})
		if !errors.Is(err, errCable) || n != 3 {
			t.Errorf("%v after %d tenures", err, n)
		}

		ctx, cancel := context.WithCancel(bg)
		err = lease.RunLoop(ctx, s, lease.Job{Name: "x", TTL: ttl}, func(context.Context, lease.Grant) error {
			cancel()
			return errCable
		})
		if !errors.Is(err, errCable) {
			t.Errorf("%v, want what the job said at the end", err)
		}

		held(t, s, time.Hour)
		err = lease.RunLoop(bg, s, lease.Job{Name: "x", TTL: ttl, NoWait: true}, notCalled(t))
		if !errors.Is(err, lease.ErrHeld) {
			t.Errorf("%v, want the refusal", err)
		}
	})
}

// A job that returns at once leaves others a turn.
func TestRunLoop_Pauses(t *testing.T) {
	inBubble(t, func(t *testing.T, s *faulty) {
		ctx, cancel := context.WithTimeout(bg, 5*time.Minute)
		defer cancel()
		var turns [2]int
		var all sync.WaitGroup
		for i := range turns {
			all.Go(func() {
				err := lease.RunLoop(ctx, polled{s}, lease.Job{Name: "x", TTL: ttl, Pause: 5 * time.Second}, func(context.Context, lease.Grant) error {
					turns[i]++
					time.Sleep(2 * time.Second)
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if turns[0] < 10 || turns[1] < 10 {
			t.Errorf("turns %v of two loops", turns)
		}
	})
}
