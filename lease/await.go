package lease

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// awaiting is the acquire for one tenure.
type awaiting struct {
	store  Store
	job    Job
	events *teller

	// above is the largest token of an earlier tenure. Its grant is over, also
	// when the store still gives it to its owner (rule 11).
	above uint64

	doubt bool   // the store may have granted what nobody uses
	said  string // the kind of the last HoldWaiting
}

// acquire returns a grant with the margin taken off, or an error after which
// nothing is left behind at the store, as far as that can be reached.
func (a *awaiting) acquire(ctx context.Context) (Grant, error) {
	wait, cancel := ctx, context.CancelFunc(func() {})
	if a.job.MaxWait > 0 {
		wait, cancel = context.WithTimeout(ctx, a.job.MaxWait)
	}
	defer cancel()
	g, err := a.loop(wait)
	if err != nil && wait.Err() != nil && ctx.Err() == nil {
		g, err = a.last(ctx, err)
	}
	if err == nil && ctx.Err() != nil {
		a.doubt, err = true, context.Cause(ctx)
	}
	if err == nil {
		return g, nil
	}
	if a.doubt {
		a.giveBack(ctx)
	}
	if ctx.Err() != nil {
		if cause := context.Cause(ctx); !errors.Is(err, cause) || errors.Is(err, ErrHeld) {
			err = fmt.Errorf("%w; last answer: %v", cause, err)
		}
	}
	return Grant{}, fmt.Errorf("acquire lease %q: %w", a.job.Name, err)
}

// loop tries until it has the lease, ctx ends, or no other try would help.
func (a *awaiting) loop(ctx context.Context) (Grant, error) {
	for tries := 0; ; {
		g, err := a.try(ctx, !a.job.NoWait)
		if err == nil || a.job.NoWait || ctx.Err() != nil || errors.Is(err, ErrInvalid) || errors.Is(err, ErrClosed) {
			return g, err
		}
		a.waiting(err)
		var held *HeldError
		pause := backoff(tries, a.job.TTL)
		if errors.As(err, &held) {
			tries, pause = 0, poll(held.Remaining, a.job.TTL)
		} else {
			tries++
		}
		if !sleep(ctx, pause) {
			return Grant{}, err
		}
	}
}

// try calls the store once.
func (a *awaiting) try(ctx context.Context, wait bool) (Grant, error) {
	var g Grant
	var err error
	if w, ok := a.store.(Waiter); ok && wait {
		g, err = w.AcquireWait(ctx, a.job.Name, a.job.Owner, a.job.TTL)
	} else {
		// An answer that takes longer is worth nothing.
		ctx, cancel := context.WithTimeout(ctx, a.job.usable())
		defer cancel()
		g, err = a.store.Acquire(ctx, a.job.Name, a.job.Owner, a.job.TTL)
	}
	switch {
	case err == nil && g.Token <= a.above:
		a.doubt = true
		release(ctx, a.store, a.job, g, 1)
		return Grant{}, fmt.Errorf("token %d is of an earlier tenure: %w", g.Token, ErrUnavailable)
	case err == nil && g.WithMargin(a.job.Margin).Remaining() <= 0:
		a.doubt = true
		return Grant{}, fmt.Errorf("the answer took longer than the grant: %w",
			&LostError{Name: g.Name, Owner: g.Owner, Token: g.Token, Reason: ReasonExpired})
	case err == nil:
		return g.WithMargin(a.job.Margin), nil
	}
	if !errors.Is(err, ErrHeld) && !errors.Is(err, ErrUnavailable) && !errors.Is(err, ErrInvalid) {
		a.doubt = true
	}
	return Grant{}, err
}

// last is one more try when MaxWait is over, because a parked acquire does not
// say who has the lease.
func (a *awaiting) last(ctx context.Context, err error) (Grant, error) {
	if !errors.Is(err, ErrHeld) && !errors.Is(err, ErrClosed) && !errors.Is(err, ErrInvalid) {
		var g Grant
		if g, err = a.try(ctx, false); err == nil {
			return g, nil
		}
	}
	return Grant{}, fmt.Errorf("waited %v: %w", a.job.MaxWait, err)
}

// giveBack releases what an acquire with an unknown outcome may have got.
// Acquiring again is how its token is learned.
func (a *awaiting) giveBack(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.job.ReleaseTimeout)
	defer cancel()
	for tries := 0; ; tries++ {
		g, err := a.store.Acquire(ctx, a.job.Name, a.job.Owner, a.job.TTL)
		if err == nil {
			err = release(ctx, a.store, a.job, g, 0)
		}
		if err == nil || errors.Is(err, ErrHeld) || errors.Is(err, ErrInvalid) || errors.Is(err, ErrClosed) ||
			!sleep(ctx, backoff(tries, a.job.TTL)) {
			return
		}
	}
}

// waiting tells that the lease was not to be had, when that is news.
func (a *awaiting) waiting(err error) {
	kind := "other"
	for _, k := range []error{ErrHeld, ErrUnavailable, ErrUnknownOutcome} {
		if errors.Is(err, k) {
			kind = k.Error()
			break
		}
	}
	if kind != a.said {
		a.said = kind
		a.events.event(HoldEvent{Kind: HoldWaiting, Err: err,
			Grant: Grant{Name: a.job.Name, Owner: a.job.Owner, TTL: a.job.TTL}})
	}
}

// poll returns when to ask again for a lease that is held for another remaining.
// A holder renews or releases before that, so the hint is not the whole pause.
func poll(remaining, ttl time.Duration) time.Duration {
	d := min(max(remaining, ttl/50), ttl/3, 5*time.Second)
	return d + rand.N(d/4+1)
}

// sleep waits for d, and returns false when ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
