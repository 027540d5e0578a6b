package lease_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/raftlease/raftlease/lease"
)

func TestJob_ValidateNamesEveryFault(t *testing.T) {
	if err := (lease.Job{Name: "x"}).Validate(); err != nil {
		t.Errorf("a name alone: %v", err)
	}
	for _, c := range []struct {
		job    lease.Job
		fields []string
	}{
		{lease.Job{}, []string{"name"}},
		{lease.Job{Owner: " "}, []string{"name", "owner"}},
		{lease.Job{Name: "x", TTL: -1, MaxWait: -1, AtLeast: -1, ReleaseTimeout: -1, Pause: -1}, []string{"TTL", "MaxWait", "AtLeast", "ReleaseTimeout", "Pause"}},
		{lease.Job{Name: "x", TTL: 9 * time.Millisecond}, []string{"TTL"}},
		{lease.Job{Name: "x", TTL: time.Second + 1}, []string{"TTL"}},
		{lease.Job{Name: "x", TTL: ttl, Margin: ttl/2 + 1}, []string{"Margin"}},
		{lease.Job{Name: "x", Margin: -1}, []string{"Margin"}},
		{lease.Job{Name: "x", NoWait: true, MaxWait: 1}, []string{"MaxWait"}},
		{lease.Job{Name: "x", Require: 3}, []string{"Require"}},
		{lease.Job{Name: "x", Require: -1}, []string{"Require"}},
	} {
		err := c.job.Validate()
		var inv *lease.InvalidError
		if !errors.As(err, &inv) || len(inv.Faults) != len(c.fields) {
			t.Errorf("%+v: %v, want faults of %q", c.job, err, c.fields)
			continue
		}
		for i, f := range inv.Faults {
			if f.Field != c.fields[i] {
				t.Errorf("%+v: fault of %q, want %q", c.job, f.Field, c.fields[i])
			}
		}
		if err := lease.Run(bg, polled{}, c.job, notCalled(t)); !errors.Is(err, lease.ErrInvalid) {
			t.Errorf("run: %v", err)
		}
	}
}

// eventually is a store with the weaker guarantee.
type eventually struct{ *faulty }

func (eventually) Guarantee() lease.Guarantee { return lease.Eventual }

func TestRun_Require(t *testing.T) {
	inBubble(t, func(t *testing.T, s *faulty) {
		for _, c := range []struct {
			store   lease.Store
			require lease.Guarantee
			enough  bool
		}{
			{s, 0, true}, {s, lease.Eventual, true}, {s, lease.Exclusive, true},
			{eventually{s}, 0, true}, {eventually{s}, lease.Eventual, true}, {eventually{s}, lease.Exclusive, false},
		} {
			ran := false
			err := lease.Run(bg, c.store, lease.Job{Name: "x", Require: c.require}, func(context.Context, lease.Grant) error {
				ran = true
				return nil
			})
			if ran != c.enough || (err == nil) != c.enough {
				t.Errorf("%v on a store that is %v: %v, ran: %v", c.require, c.store.Guarantee(), err, ran)
			}
			if err != nil && (!errors.Is(err, lease.ErrInvalid) || !strings.Contains(err.Error(), "Require")) {
				t.Errorf("%v, want that it names the field", err)
			}
		}
	})
}

// untouchable is a store that must not be called.
type untouchable struct{ lease.Store }

func TestRun_DisabledCallsNoStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, store := range []lease.Store{nil, untouchable{}} {
			var told events
			job := lease.Job{Name: "x", Disabled: true, Require: lease.Exclusive, Events: told.add}
			var kept lease.Grant
			err := lease.Run(bg, store, job, func(ctx context.Context, g lease.Grant) error {
				time.Sleep(time.Hour)
				kept = g
				if g.Token != 0 || g.Remaining() <= 0 || !g.Deadline().IsZero() {
					t.Errorf("grant %+v, %v remain until %v", g, g.Remaining(), g.Deadline())
				}
				return errors.Join(g.Check(), g.WithMargin(time.Second).Check(), ctx.Err())
			})
			if err != nil {
				t.Error(err)
			}
			lostBecause(t, kept.Check(), lease.ReasonReleased)
			wantKinds(t, &told, lease.HoldAcquired, lease.HoldReleased)
		}
	})
}

// Case 10, within a process: a second call with the same owner would be given
// the grant of the first.
func TestRun_SameOwnerTwiceInOneProcess(t *testing.T) {
	inBubble(t, func(t *testing.T, s *faulty) {
		job := lease.Job{Name: "x", Owner: "a", TTL: ttl}
		other := s.beside()
		err := lease.Run(bg, s, job, func(context.Context, lease.Grant) error {
			if err := lease.Run(bg, s, job, notCalled(t)); !errors.Is(err, lease.ErrInvalid) {
				t.Errorf("the same: %v", err)
			}
			job.Owner = ""
			job.NoWait = true
			if err := lease.Run(bg, other, job, notCalled(t)); !errors.Is(err, lease.ErrHeld) {
				t.Errorf("an owner of its own: %v", err)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		job = lease.Job{Name: "x", Owner: "a", TTL: ttl}
		for range 2 {
			if err := lease.Run(bg, s, job, func(context.Context, lease.Grant) error { return nil }); err != nil {
				t.Errorf("one after the other: %v", err)
			}
		}
	})
}

// Two calls that name no owner are two owners.
func TestRun_OwnersAreUnique(t *testing.T) {
	inBubble(t, func(t *testing.T, s *faulty) {
		var running, most int
		var mu sync.Mutex
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				err := lease.Run(bg, s, lease.Job{Name: "x", TTL: ttl}, func(context.Context, lease.Grant) error {
					mu.Lock()
					running++
					most = max(most, running)
					mu.Unlock()
					time.Sleep(ttl)
					mu.Lock()
					running--
					mu.Unlock()
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if most != 1 {
			t.Errorf("%d at once", most)
		}
	})
}

// A handler that blocks delays no deadline and no release, and gets every event
// in order once it goes on.
func TestRun_EventsHandlerBlocks(t *testing.T) {
	inBubble(t, func(t *testing.T, s *faulty) {
		var told events
		free := make(chan struct{})
		job := lease.Job{Name: "x", TTL: ttl, Events: func(e lease.HoldEvent) {
			<-free
			told.add(e)
		}}
		done := make(chan error, 1)
		begun := time.Now()
		go func() {
			done <- lease.Run(bg, s, job, func(ctx context.Context, _ lease.Grant) error {
				time.Sleep(ttl)
				s.cut()
				<-ctx.Done()
				if d := time.Since(begun); d > 2*ttl {
					t.Errorf("stopped after %v", d)
				}
				s.noCut()
				return nil
			})
		}()
		time.Sleep(time.Hour)
		isFree(t, s, "x")
		select {
		case err := <-done:
			t.Errorf("returned before its events were told: %v", err)
		default:
		}
		close(free)
		lostBecause(t, <-done, lease.ReasonExpired)
		wantKinds(t, &told, lease.HoldAcquired, lease.HoldRenewed, lease.HoldJeopardy, lease.HoldLost, lease.HoldReleased)
		if n := len(told.all); n < 6 {
			t.Errorf("%d events, some were dropped", n)
		}
	})
}

// The name stays taken for AtLeast after a short job.
func TestRun_AtLeast(t *testing.T) {
	inBubble(t, func(t *testing.T, s *faulty) {
		begun := time.Now()
		job := lease.Job{Name: "x", TTL: ttl, AtLeast: time.Minute}
		time.AfterFunc(59*time.Second, func() { isHeld(t, s, "x") })
		if err := lease.Run(bg, s, job, func(context.Context, lease.Grant) error { return nil }); err != nil {
			t.Error(err)
		}
		if d := time.Since(begun); d != time.Minute {
			t.Errorf("returned after %v", d)
		}
		isFree(t, s, "x")
	})
}

func TestRun_AtLeastOutlivesTheShutdown(t *testing.T) {
	inBubble(t, func(t *testing.T, s *faulty) {
		ctx, cancel := context.WithCancel(bg)
		begun := time.Now()
		time.AfterFunc(time.Second, cancel)
		var told events
		job := lease.Job{Name: "x", TTL: ttl, AtLeast: time.Minute, Events: told.add}
		if err := lease.Run(ctx, s, job, func(context.Context, lease.Grant) error { return nil }); err != nil {
			t.Error(err)
		}
		if d := time.Since(begun); d != time.Second {
			t.Errorf("returned after %v, want when ctx ended", d)
		}
		if e, _ := told.first(t, lease.HoldReleased); e.Err != nil || e.Remaining != 59*time.Second {
			t.Errorf("released: %+v", e)
		}
		time.Sleep(58 * time.Second)
		isHeld(t, s, "x")
		time.Sleep(2 * time.Second) // a granter counts longer
		isFree(t, s, "x")
	})
}

// What happens to the lease after the job was done does not undo the job.
func TestRun_AtLeastIsLost(t *testing.T) {
	inBubble(t, func(t *testing.T, s *faulty) {
		time.AfterFunc(time.Second, func() {
			if _, err := s.Break(bg, "x"); err != nil {
				t.Error(err)
			}
		})
		job := lease.Job{Name: "x", TTL: ttl, AtLeast: time.Minute}
		if err := lease.Run(bg, s, job, func(context.Context, lease.Grant) error { return nil }); err != nil {
			t.Errorf("%v, want what the job returned", err)
		}
	})
}
