package leasetest

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/raftlease/raftlease/lease"
	"github.com/raftlease/raftlease/memstore"
)

type acquireFunc = func(ctx context.Context, name, owner string, ttl time.Duration) (lease.Grant, error)

func waits(wait func(s *memstore.Store) acquireFunc) func(s *memstore.Store) hooks {
	return func(s *memstore.Store) hooks { return hooks{wait: wait(s)} }
}

// impatient waits a while and then takes the name by force.
func impatient(s *memstore.Store) acquireFunc {
	return func(ctx context.Context, name, owner string, ttl time.Duration) (lease.Grant, error) {
		g, err := s.Acquire(ctx, name, owner, ttl)
		if errors.Is(err, lease.ErrHeld) {
			time.Sleep(lease.DefaultMin * 9 / 10)
			s.Break(bg, name)
			return s.Acquire(ctx, name, owner, ttl)
		}
		return g, err
	}
}

// lastFirst serves whoever came last.
func lastFirst(s *memstore.Store) acquireFunc {
	var mu sync.Mutex
	came := map[string]int{}
	return func(ctx context.Context, name, owner string, ttl time.Duration) (lease.Grant, error) {
		mu.Lock()
		came[name]++
		me := came[name]
		mu.Unlock()
		ctx.Done()
		for {
			mu.Lock()
			if came[name] == me {
				if g, err := s.Acquire(ctx, name, owner, ttl); err == nil || ctx.Err() != nil {
					came[name]--
					mu.Unlock()
					return g, err
				}
			}
			mu.Unlock()
			time.Sleep(time.Millisecond)
		}
	}
}

var waitMutants = []mutant{
	{"never serves a waiter of a free name", "a waiter is granted a free name at once", waits(func(s *memstore.Store) acquireFunc {
		return func(ctx context.Context, name, owner string, ttl time.Duration) (lease.Grant, error) {
			s.Acquire(ctx, name, "ghost", ttl)
			return s.AcquireWait(ctx, name, owner, ttl)
		}
	})},
	{"lets the owner wait for itself", "G6 a waiter that holds the name gets its own grant", waits(func(s *memstore.Store) acquireFunc {
		return func(ctx context.Context, name, owner string, ttl time.Duration) (lease.Grant, error) {
			for {
				r, err := s.Get(ctx, name)
				if err != nil || r.Owner != owner {
					return s.AcquireWait(ctx, name, owner, ttl)
				}
				time.Sleep(time.Second)
			}
		}
	})},
	{"makes a new grant for an owner that waits", "G6 a waiter that holds the name gets its own grant", waits(func(s *memstore.Store) acquireFunc {
		return newEachTime(s).acquire
	})},
	{"does not wait", "a waiter is granted the name when it is released", waits(func(s *memstore.Store) acquireFunc { return s.Acquire })},
	{"serves waiters by force", "a waiter is granted the name when it is released", waits(func(s *memstore.Store) acquireFunc {
		return func(ctx context.Context, name, owner string, ttl time.Duration) (lease.Grant, error) {
			s.Break(bg, name)
			return s.Acquire(ctx, name, owner, ttl)
		}
	})},
	{"serves waiters before expiry", "G3 a waiter is granted the name after expiry and not before", waits(impatient)},
	{"serves the last waiter first", "waiters are served first come first served", waits(lastFirst)},
	{"lets waiters meet", "G1 every waiter has its turn and none meets another", waits(func(s *memstore.Store) acquireFunc {
		return checkThenAct(s).acquire
	})},
	{"keeps the grant of a waiter that left", "a waiter whose context ended is never left with a grant", waits(func(s *memstore.Store) acquireFunc {
		return func(ctx context.Context, name, owner string, ttl time.Duration) (lease.Grant, error) {
			type answer struct {
				g   lease.Grant
				err error
			}
			got := make(chan answer, 1)
			go func() {
				g, err := s.AcquireWait(bg, name, owner, ttl)
				got <- answer{g, err}
			}()
			time.Sleep(time.Millisecond) // it is parked
			select {
			case a := <-got:
				return a.g, a.err
			case <-ctx.Done():
				return lease.Grant{}, errors.Join(lease.ErrUnavailable, context.Cause(ctx))
			}
		}
	})},
	{"counts waiting as lease time", "G4 time spent waiting is not lease time", waits(func(s *memstore.Store) acquireFunc {
		return func(ctx context.Context, name, owner string, ttl time.Duration) (lease.Grant, error) {
			anchor := lease.AnchorOn(bubbleClock{})
			g, err := s.AcquireWait(ctx, name, owner, ttl)
			if err == nil {
				g = anchor.Grant(name, owner, g.Token, ttl, 0)
			}
			return g, err
		}
	})},
	{"adds waiting to the lease time", "G4 time spent waiting is not lease time", waits(func(s *memstore.Store) acquireFunc {
		return func(ctx context.Context, name, owner string, ttl time.Duration) (lease.Grant, error) {
			anchor := lease.AnchorOn(bubbleClock{})
			g, err := s.AcquireWait(ctx, name, owner, ttl)
			if err == nil {
				g = anchor.Grant(name, owner, g.Token, ttl, 2*anchor.Elapsed())
			}
			return g, err
		}
	})},
}
