package fence

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/raftlease/raftlease/lease"
	"pgregory.net/rapid"
)

var bg = context.Background()

// isStale checks that err refuses token because of highest.
func isStale(t testing.TB, err error, token, highest uint64) {
	t.Helper()
	var s *StaleError
	if !errors.As(err, &s) || s.Token != token || s.Highest != highest {
		t.Errorf("%v, want that token %d is stale because of %d", err, token, highest)
		return
	}
	if !errors.Is(err, ErrStale) || !errors.Is(err, lease.ErrLost) || errors.Is(err, lease.ErrHeld) {
		t.Errorf("%v is not ErrStale and lease.ErrLost", err)
	}
}

// G7: a token below the highest seen is refused, for each name by itself.
func TestGate_Check(t *testing.T) {
	g := NewGate(NewMemory())
	for _, c := range []struct {
		name           string
		token, highest uint64 // 0: admitted
	}{
		{"x", 7, 0}, {"x", 7, 0}, {"x", 9, 0}, {"x", 7, 9}, {"x", 8, 9}, {"x", 9, 0},
		{"y", 1, 0}, {"y", 2, 0}, {"y", 1, 2}, {"x", lease.MaxToken, 0}, {"x", 9, lease.MaxToken},
	} {
		check := g.Check(bg, c.name, c.token)
		do := g.Do(bg, c.name, c.token, func(context.Context) error { return nil })
		for _, err := range []error{check, do} {
			if c.highest != 0 {
				isStale(t, err, c.token, c.highest)
			} else if err != nil {
				t.Errorf("%q with token %d: %v", c.name, c.token, err)
			}
		}
	}
	if n := len(g.lanes); n != 0 {
		t.Errorf("%d lanes are kept", n)
	}
}

// G8: what no lease has is refused with the field's name, and raises nothing.
func TestGate_BadInput(t *testing.T) {
	m := NewMemory()
	g := NewGate(m)
	for _, c := range []struct {
		name  string
		token uint64
	}{{"", 1}, {"x", 0}, {"x", lease.MaxToken + 1}, {" x", 1}, {"\xff", 1}} {
		for _, err := range []error{
			g.Check(bg, c.name, c.token),
			g.Do(bg, c.name, c.token, func(context.Context) error { t.Error("acted"); return nil }),
		} {
			if !errors.Is(err, lease.ErrInvalid) {
				t.Errorf("%q with token %d: %v", c.name, c.token, err)
			}
		}
	}
	if len(m.marks) != 0 {
		t.Errorf("marks %v", m.marks)
	}
}

type brokenMarks struct{ err error }

func (b brokenMarks) Raise(context.Context, string, uint64) (uint64, error) { return 0, b.err }

// What is not known is not admitted.
func TestGate_MarksFail(t *testing.T) {
	broken := errors.New("disk full")
	g := NewGate(brokenMarks{broken})
	if err := g.Check(bg, "x", 1); !errors.Is(err, broken) || errors.Is(err, ErrStale) {
		t.Errorf("check: %v", err)
	}
	err := g.Do(bg, "x", 1, func(context.Context) error { t.Error("acted"); return nil })
	if !errors.Is(err, broken) {
		t.Errorf("do: %v", err)
	}
}

func TestGate_DoReturnsTheErrorOfTheAct(t *testing.T) {
	boom := errors.New("boom")
	g := NewGate(NewMemory())
	if err := g.Do(bg, "x", 1, func(context.Context) error { return boom }); err != boom {
		t.Errorf("%v, want %v", err, boom)
	}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic is gone")
			}
		}()
		_ = g.Do(bg, "x", 1, func(context.Context) error { panic(boom) })
	}()
	if err := g.Do(bg, "x", 2, func(context.Context) error { return nil }); err != nil {
		t.Errorf("after a panic: %v", err)
	}
}

// G7: a larger token ends the acts with smaller ones and begins after them.
func TestGate_LargerTokenWaitsForSmallerOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(NewMemory())
		var all sync.WaitGroup
		var mu sync.Mutex
		var begun, returned, next time.Time
		begun = time.Now()
		for range 3 {
			all.Go(func() {
				err := g.Do(bg, "x", 7, func(ctx context.Context) error {
					<-ctx.Done()
					isStale(t, context.Cause(ctx), 7, 8)
					time.Sleep(time.Second) // it takes a while to stop
					mu.Lock()
					defer mu.Unlock()
					returned = time.Now()
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		time.Sleep(time.Minute)
		all.Go(func() {
			err := g.Do(bg, "x", 8, func(ctx context.Context) error {
				next = time.Now()
				return ctx.Err()
			})
			if err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		err := g.Do(bg, "x", 7, func(context.Context) error { t.Error("acted after 8 came"); return nil })
		isStale(t, err, 7, 8)
		all.Wait()
		if returned.Sub(begun) != time.Minute+time.Second || !next.Equal(returned) {
			t.Errorf("8 began %v after 7 returned, which was after %v", next.Sub(returned), returned.Sub(begun))
		}
		if n := len(g.lanes); n != 0 {
			t.Errorf("%d lanes are kept", n)
		}
	})
}

func TestGate_WaitingEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(NewMemory())
		ctx, cancel := context.WithTimeout(bg, time.Minute)
		defer cancel()
		stuck := make(chan struct{})
		var all sync.WaitGroup
		all.Go(func() {
			_ = g.Do(bg, "x", 7, func(context.Context) error { <-stuck; return nil })
		})
		synctest.Wait()
		err := g.Do(ctx, "x", 8, func(context.Context) error { t.Error("acted beside 7"); return nil })
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v, want that the time was over", err)
		}
		close(stuck)
		all.Wait()
	})
}

// Whoever waits is refused as soon as a larger token comes, not only at its turn.
func TestGate_WaiterIsOvertaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(NewMemory())
		stuck := make(chan struct{})
		var all sync.WaitGroup
		all.Go(func() {
			_ = g.Do(bg, "x", 7, func(context.Context) error { <-stuck; return nil })
		})
		synctest.Wait()
		waiter := make(chan error, 1)
		all.Go(func() {
			waiter <- g.Do(bg, "x", 8, func(context.Context) error { t.Error("8 acted"); return nil })
		})
		synctest.Wait()
		all.Go(func() {
			if err := g.Do(bg, "x", 9, func(context.Context) error { return nil }); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		select {
		case err := <-waiter:
			isStale(t, err, 8, 9)
		default:
			t.Error("8 still waits, and can never act")
		}
		close(stuck)
		all.Wait()
	})
}

// slowMarks takes its time before and after.
type slowMarks struct {
	Marks
	pause func()
}

func (s slowMarks) Raise(ctx context.Context, name string, token uint64) (uint64, error) {
	s.pause()
	defer s.pause()
	return s.Marks.Raise(ctx, name, token)
}

// However acts come, a smaller token never begins after a larger one and never
// runs beside it (G7).
func TestGate_OrderOfActs(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		tokens := rapid.SliceOfN(rapid.Uint64Range(1, 5), 2, 20).Draw(r, "tokens")
		pauses := rapid.SliceOfN(rapid.IntRange(0, 5), len(tokens)*4, len(tokens)*4).Draw(r, "pauses")
		synctest.Test(t, func(t *testing.T) {
			n := 0
			var mu sync.Mutex
			pause := func() {
				mu.Lock()
				d := pauses[n%len(pauses)]
				n++
				mu.Unlock()
				time.Sleep(time.Duration(d) * time.Second)
			}
			g := NewGate(slowMarks{NewMemory(), pause})
			var highest uint64
			inside := map[uint64]int{}
			var all sync.WaitGroup
			for _, token := range tokens {
				all.Go(func() {
					pause()
					err := g.Do(bg, "x", token, func(context.Context) error {
						mu.Lock()
						if token < highest {
							t.Errorf("%d began after %d", token, highest)
						}
						highest = max(highest, token)
						inside[token]++
						if len(inside) > 1 {
							t.Errorf("tokens %v are inside", inside)
						}
						mu.Unlock()
						pause()
						mu.Lock()
						defer mu.Unlock()
						if inside[token]--; inside[token] == 0 {
							delete(inside, token)
						}
						return nil
					})
					if err != nil && !errors.Is(err, ErrStale) {
						t.Error(err)
					}
				})
			}
			all.Wait()
		})
	})
}

func TestNewGate_WithoutMarks(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	NewGate(nil)
}
