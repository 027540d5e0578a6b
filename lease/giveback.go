package lease

import (
	"context"
	"errors"
	"time"
)

// release gives g back. ctx gives values, not its end: the store is called for
// ReleaseTimeout at most, and no more than tries times unless that is 0.
func release(ctx context.Context, s Store, j Job, g Grant, tries int) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), j.ReleaseTimeout)
	defer cancel()
	for n := 1; ; n++ {
		err := func() error {
			ctx, cancel := context.WithTimeout(ctx, j.tryTimeout())
			defer cancel()
			return s.Release(ctx, g)
		}()
		switch {
		case err == nil || errors.Is(err, ErrLost):
			return nil
		case n == tries || errors.Is(err, ErrInvalid) || errors.Is(err, ErrClosed) || !sleep(ctx, backoff(n, j.TTL)):
			return err
		}
	}
}

// leave lets g expire by itself, not before rest has passed.
func leave(ctx context.Context, s Store, j Job, g Grant, rest time.Duration) error {
	if g.Remaining() >= rest {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), j.ReleaseTimeout)
	defer cancel()
	_, err := s.Renew(ctx, g, max(rest.Truncate(ttlUnit)+ttlUnit, j.TTL))
	return err
}
