package lease_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/raftlease/raftlease/lease"
)

var noon = time.Date(2026, 12, 4, 12, 0, 0, 0, time.UTC)

// once calls Once with a job that counts.
func once(t testing.TB, s lease.Store, slot time.Time, ran *int) bool {
	t.Helper()
	did, err := lease.Once(bg, s, lease.Job{Name: "x", TTL: ttl}, slot, func(context.Context, lease.Grant) error {
		*ran++
		return nil
	})
	if err != nil {
		t.Errorf("once at %v: %v", slot, err)
	}
	return did
}

func TestOnce_SlotsRise(t *testing.T) {
	inBubble(t, func(t *testing.T, s *faulty) {
		ran := 0
		for _, c := range []struct {
			slot time.Time
			runs bool
		}{
			{noon, true}, {noon, false}, {noon.Add(-time.Hour), false}, {noon.Add(1), true}, {noon, false},
			{noon.Add(1).In(time.FixedZone("elsewhere", 3600)), false}, {noon.Add(time.Hour), true},
		} {
			if did := once(t, s, c.slot, &ran); did != c.runs {
				t.Errorf("%v ran: %v, want %v", c.slot, did, c.runs)
			}
		}
		if ran != 3 {
			t.Errorf("ran %d times", ran)
		}
	})
}

// Replicas whose ticks differ, with short jobs, and some of which die at once
// after they began: no slot is run twice.
func TestOnce_ShiftedReplicas(t *testing.T) {
	inBubble(t, func(t *testing.T, s *faulty) {
		var mu sync.Mutex
		runs := map[time.Time]int{}
		var all sync.WaitGroup
		for i := range 10 {
			all.Go(func() {
				time.Sleep(time.Duration(i) * 7 * time.Second)
				for n := range 20 {
					slot := noon.Add(time.Duration(n) * time.Minute)
					_, err := lease.Once(bg, s.beside(), lease.Job{Name: "x", TTL: ttl}, slot, func(context.Context, lease.Grant) error {
						mu.Lock()
						defer mu.Unlock()
						runs[slot]++
						return errCable // which counts as run
					})
					if err != nil && err != errCable {
						t.Error(err)
					}
					time.Sleep(time.Minute)
				}
			})
		}
		all.Wait()
		for slot, n := range runs {
			if n != 1 {
				t.Errorf("%v ran %d times", slot, n)
			}
		}
		if len(runs) != 20 {
			t.Errorf("%d slots of 20 ran", len(runs))
		}
	})
}

// Replicas that wait for the lease together, none of which has seen a mark.
func TestOnce_WaitingTogether(t *testing.T) {
	inBubble(t, func(t *testing.T, s *faulty) {
		held(t, s, ttl)
		var ran, returned int
		var mu sync.Mutex
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() {
				did, err := lease.Once(bg, s, lease.Job{Name: "x", TTL: ttl}, noon, func(context.Context, lease.Grant) error { return nil })
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				if returned++; did {
					ran++
				}
			})
		}
		all.Wait()
		if ran != 1 || returned != 5 {
			t.Errorf("%d of %d ran the slot", ran, returned)
		}
	})
}

// marking is a store whose Put a test stands before.
type marking struct {
	*faulty
	put func(call func() error) error
}

func (m marking) Put(ctx context.Context, g lease.Grant, data []byte) error {
	return m.put(func() error { return m.Store.Put(ctx, g, data) })
}

// The mark is there before the job: when its outcome is unknown it is repeated,
// and without it nothing runs.
func TestOnce_MarkFirst(t *testing.T) {
	inBubble(t, func(t *testing.T, s *faulty) {
		ran, calls := 0, 0
		unsure := marking{s, func(call func() error) error {
			if err := call(); err != nil {
				t.Error(err)
			}
			if calls++; calls < 4 {
				return lease.ErrUnknownOutcome
			}
			if ran != 0 {
				t.Error("ran before it was marked")
			}
			return nil
		}}
		if !once(t, unsure, noon, &ran) || ran != 1 || calls != 4 {
			t.Errorf("ran %d times after %d calls", ran, calls)
		}

		broken := marking{s, func(call func() error) error {
			if _, err := s.Break(bg, "x"); err != nil {
				t.Error(err)
			}
			return call()
		}}
		did, err := lease.Once(bg, broken, lease.Job{Name: "x", TTL: ttl}, noon.Add(time.Hour), notCalled(t))
		if did || !errors.Is(err, lease.ErrLost) {
			t.Errorf("%v, %v, want that the lease is lost", did, err)
		}

		ctx, cancel := context.WithTimeout(bg, time.Minute)
		defer cancel()
		never := marking{s, func(func() error) error { return lease.ErrUnavailable }}
		did, err = lease.Once(ctx, never, lease.Job{Name: "x", TTL: ttl}, noon.Add(time.Hour), notCalled(t))
		if did || !errors.Is(err, lease.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v, %v, want that it is unavailable until the context ends", did, err)
		}
		isFree(t, s, "x")
	})
}

func TestOnce_BadInput(t *testing.T) {
	inBubble(t, func(t *testing.T, s *faulty) {
		job := lease.Job{Name: "x", TTL: ttl}
		for _, c := range []struct {
			store lease.Store
			slot  time.Time
		}{
			{polled{s}, noon}, {s, time.Time{}}, {s, noon.AddDate(9000, 0, 0)},
		} {
			if did, err := lease.Once(bg, c.store, job, c.slot, notCalled(t)); did || !errors.Is(err, lease.ErrInvalid) {
				t.Errorf("%T at %v: %v, %v", c.store, c.slot, did, err)
			}
		}
		g := held(t, s, time.Minute)
		for _, data := range []string{"row 7", "raftlease-once/1 yesterday", "raftlease-once/2 2026-12-04T12:00:00Z"} {
			if err := s.Store.Put(bg, g, []byte(data)); err != nil {
				t.Fatal(err)
			}
			if did, err := lease.Once(bg, s, job, noon, notCalled(t)); did || !errors.Is(err, lease.ErrInvalid) {
				t.Errorf("beside %q: %v, %v", data, did, err)
			}
		}
	})
}

func TestOnce_Disabled(t *testing.T) {
	did, err := lease.Once(bg, nil, lease.Job{Name: "x", Disabled: true}, noon, func(context.Context, lease.Grant) error { return errCable })
	if !did || err != errCable {
		t.Errorf("%v, %v", did, err)
	}
}
