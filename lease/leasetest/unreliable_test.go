package leasetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/raftlease/raftlease/lease"
	"github.com/raftlease/raftlease/memstore"
)

// unreliable is a sound store behind a bad line: requests and answers take
// their time, and each may get lost.
func unreliable(s *memstore.Store) hooks {
	return hooks{
		acquire: func(ctx context.Context, name, owner string, ttl time.Duration) (g lease.Grant, err error) {
			anchor := lease.AnchorOn(bubbleClock{})
			err = overLine(ctx, func() error { g, err = s.Acquire(ctx, name, owner, ttl); return err })
			return anchored(anchor, g, 0, err)
		},
		wait: func(ctx context.Context, name, owner string, ttl time.Duration) (g lease.Grant, err error) {
			anchor := lease.AnchorOn(bubbleClock{})
			parked := time.Duration(0)
			// Requests of waiters are not lost, or they would change their order.
			err = overLine(withoutDeadline{ctx}, func() error {
				since := time.Now()
				g, err = s.AcquireWait(ctx, name, owner, ttl)
				parked = time.Since(since)
				return err
			})
			return anchored(anchor, g, parked, err)
		},
		renew: func(ctx context.Context, g lease.Grant, ttl time.Duration) (r lease.Grant, err error) {
			anchor := lease.AnchorOn(bubbleClock{})
			err = overLine(ctx, func() error { r, err = s.Renew(ctx, g, ttl); return err })
			return anchored(anchor, r, 0, err)
		},
		release: func(ctx context.Context, g lease.Grant) error {
			return overLine(ctx, func() error { return s.Release(ctx, g) })
		},
		get: func(ctx context.Context, name string) (r lease.Record, err error) {
			err = overLine(ctx, func() error { r, err = s.Get(ctx, name); return err })
			return r, err
		},
		put: func(ctx context.Context, g lease.Grant, data []byte) error {
			return overLine(ctx, func() error { return s.Put(ctx, g, data) })
		},
	}
}

func anchored(a lease.Anchor, g lease.Grant, parked time.Duration, err error) (lease.Grant, error) {
	if err != nil {
		return lease.Grant{}, err
	}
	return a.Grant(g.Name, g.Owner, g.Token, g.TTL, parked), nil
}

// overLine makes a call over the bad line.
func overLine(ctx context.Context, call func() error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%w: %w", lease.ErrUnavailable, context.Cause(ctx))
	}
	time.Sleep(rand.N(10 * time.Millisecond))
	if hasDeadline(ctx) && rand.N(8) == 0 {
		return lease.ErrUnavailable
	}
	err := call()
	time.Sleep(rand.N(20 * time.Millisecond))
	if err == nil && hasDeadline(ctx) && rand.N(8) == 0 {
		return lease.ErrUnknownOutcome
	}
	return err
}

type withoutDeadline struct{ context.Context }

func (withoutDeadline) Deadline() (time.Time, bool) { return time.Time{}, false }

// hasDeadline tells the calls that the suite repeats from those that it makes
// once, to see their error.
func hasDeadline(ctx context.Context) bool {
	_, ok := ctx.Deadline()
	return ok
}
