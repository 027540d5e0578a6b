package lease_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/raftlease/raftlease/lease"
)

// slow lets each call take up to most there and back. What its ctx ends on the
// way there is not done, on the way back it is.
func slow(rng *rand.Rand, mu *sync.Mutex, most time.Duration) through {
	return func(ctx context.Context, call func(context.Context) (lease.Grant, error)) (lease.Grant, error) {
		mu.Lock()
		there, back := time.Duration(rng.Int64N(int64(most))), time.Duration(rng.Int64N(int64(most)))
		mu.Unlock()
		if !rests(ctx, there) {
			return lease.Grant{}, errors.Join(lease.ErrUnavailable, context.Cause(ctx))
		}
		g, err := call(ctx)
		if !rests(ctx, back) {
			return lease.Grant{}, errors.Join(lease.ErrUnknownOutcome, context.Cause(ctx))
		}
		return g, err
	}
}

func rests(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// 1,000 runs, cancelled at random moments: each leaves no lease behind, no
// goroutine and no later call of the store. Cases 16, 19 and 20.
func TestRun_CancelledAtRandomMoments(t *testing.T) {
	seed := rand.Uint64()
	rng, mu := rand.New(rand.NewPCG(seed, 0)), new(sync.Mutex)
	began, cancelled := 0, 0
	once := func(t *testing.T, s *faulty) {
		s.acquires = slow(rng, mu, time.Second)
		s.renews = s.acquires
		ctx, cancel := context.WithCancel(bg)
		defer cancel()
		time.AfterFunc(time.Duration(rng.Int64N(int64(2*ttl))), cancel)
		length := time.Duration(rng.Int64N(int64(2 * ttl)))
		var store lease.Store = s
		if rng.IntN(2) == 0 {
			store = polled{s}
		}
		err := lease.Run(ctx, store, lease.Job{Name: "x", TTL: ttl}, func(ctx context.Context, _ lease.Grant) error {
			began++
			if !rests(ctx, length) {
				cancelled++
				return ctx.Err()
			}
			return nil
		})
		if err != nil && !errors.Is(err, context.Canceled) || errors.Is(err, lease.ErrLost) {
			t.Errorf("seed %d: %v", seed, err)
		}
		isFree(t, s, "x")
		calls := s.calls()
		time.Sleep(10 * ttl)
		if n := s.calls() - calls; n != 0 {
			t.Errorf("seed %d: %d calls after the end", seed, n)
		}
	}
	// Few bubbles: the race detector of Go 1.26 never gives back what it has for
	// each (golang/go#78156).
	for range 10 {
		synctest.Test(t, func(t *testing.T) {
			for range 100 {
				withStore(t, once)
			}
		})
	}
	if began < 500 || cancelled < 100 || cancelled > 900 {
		t.Errorf("seed %d: %d of 1000 began and %d were cancelled, which tests little", seed, began, cancelled)
	}
}

// oracle watches that the held intervals of a name do not overlap.
type oracle struct {
	mu     sync.Mutex
	inside map[string]uint64 // tokens of the holders that are working
	last   uint64
	count  int
}

func (o *oracle) enters(t testing.TB, owner string, token uint64) (leaves func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.inside) > 0 {
		t.Errorf("%s with token %d works beside %v (G1, G4)", owner, token, o.inside)
	}
	if token <= o.last {
		t.Errorf("%s has token %d after %d (G2)", owner, token, o.last)
	}
	o.inside[owner], o.last = token, token
	o.count++
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		delete(o.inside, owner)
	}
}

// Many holders behind slow and failing stores, whose clocks jump: their work
// never overlaps (G1, G4).
func TestRunLoop_NoOverlap(t *testing.T) {
	for range 20 {
		inBubble(t, func(t *testing.T, s *faulty) {
			seed := rand.Uint64()
			rng, mu := rand.New(rand.NewPCG(seed, 0)), new(sync.Mutex)
			draw := func(n int) int {
				mu.Lock()
				defer mu.Unlock()
				return rng.IntN(n)
			}
			ctx, cancel := context.WithTimeout(bg, 15*time.Minute)
			defer cancel()
			o := oracle{inside: map[string]uint64{}}
			var all sync.WaitGroup
			for i := range 6 {
				p := s.beside()
				owner := string(rune('a' + i))
				all.Go(func() {
					for rests(ctx, time.Duration(draw(60))*time.Second) {
						switch draw(5) {
						case 0:
							p.cut()
						case 1:
							p.noCut()
						case 2:
							by := slow(rng, mu, ttl)
							p.sets(func() { p.acquires, p.renews = by, by })
						case 3:
							p.clock.jumps(time.Duration(draw(20))*time.Second, 0)
						case 4:
							p.clock.jumps(0, time.Duration(draw(40)-20)*time.Second)
						}
					}
					p.noCut()
				})
				job := lease.Job{Name: "x", Owner: owner, TTL: ttl, ReleaseTimeout: time.Second, Margin: time.Duration(i) * time.Second / 2}
				all.Go(func() {
					err := lease.RunLoop(ctx, p, job, func(ctx context.Context, g lease.Grant) error {
						leaves := o.enters(t, owner, g.Token)
						defer leaves()
						rests(ctx, time.Duration(draw(40))*time.Second)
						return nil
					})
					if err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			if t.Failed() {
				t.Logf("seed %d", seed)
			}
			if o.count < 5 {
				t.Errorf("seed %d: %d tenures in a quarter of an hour", seed, o.count)
			}
			time.Sleep(2 * ttl) // the last release may not have come through
			isFree(t, s, "x")
		})
	}
}

// A job costs one goroutine besides its own, and its renewals do not go in step.
func TestRun_ManyJobs(t *testing.T) {
	const jobs = 200
	inBubble(t, func(t *testing.T, s *faulty) {
		ctx, cancel := context.WithCancel(bg)
		renewals := map[time.Duration]int{}
		begun := time.Now()
		s.renews = func(ctx context.Context, call func(context.Context) (lease.Grant, error)) (lease.Grant, error) {
			s.mu.Lock()
			renewals[time.Since(begun).Truncate(100*time.Millisecond)]++
			s.mu.Unlock()
			return call(ctx)
		}
		var all sync.WaitGroup
		before := runtime.NumGoroutine()
		for i := range jobs {
			job := lease.Job{Name: "job " + time.Duration(i).String(), TTL: 15 * time.Second, Events: func(lease.HoldEvent) {}}
			all.Go(func() { _ = lease.Run(ctx, s, job, untilEnd) })
		}
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if n := runtime.NumGoroutine() - before; n > 2*jobs+10 {
			t.Errorf("%d goroutines for %d jobs", n, jobs)
		}
		cancel()
		all.Wait()
		total, most := 0, 0
		for _, n := range renewals {
			total += n
			most = max(most, n)
		}
		if most > total/10 {
			t.Errorf("%d of %d renewals within 100ms", most, total)
		}
	})
}
