package leasetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/raftlease/raftlease/lease"
	"github.com/raftlease/raftlease/memstore"
)

// deaf takes no notice of contexts that have ended.
func deaf(s *memstore.Store) hooks {
	return hooks{
		acquire: func(_ context.Context, name, owner string, ttl time.Duration) (lease.Grant, error) {
			return s.Acquire(bg, name, owner, ttl)
		},
		renew: func(_ context.Context, g lease.Grant, ttl time.Duration) (lease.Grant, error) {
			return s.Renew(bg, g, ttl)
		},
		release: func(_ context.Context, g lease.Grant) error { return s.Release(bg, g) },
		get:     func(_ context.Context, name string) (lease.Record, error) { return s.Get(bg, name) },
	}
}

// endsWith answers an acquire whose context has ended in another way.
func endsWith(answer func(ctx context.Context) error) func(s *memstore.Store) hooks {
	return func(s *memstore.Store) hooks {
		return hooks{acquire: func(ctx context.Context, name, owner string, ttl time.Duration) (lease.Grant, error) {
			if ctx.Err() != nil {
				return lease.Grant{}, answer(ctx)
			}
			return s.Acquire(ctx, name, owner, ttl)
		}}
	}
}

var contextMutants = []mutant{
	{"is deaf to contexts in acquire", "G6 an acquire whose context has ended grants nothing", deaf},
	{"is deaf to contexts in release", "G6 a renewal or release whose context has ended ends nothing", deaf},
	{"is deaf to contexts in get", "G6 reads and writes whose context has ended say so", deaf},
	{"grants and says unavailable", "G6 an acquire whose context has ended grants nothing", ghostly},
	{"does not name the cause", "G6 an acquire whose context has ended grants nothing", endsWith(func(context.Context) error { return lease.ErrUnavailable })},
	{"names the cause alone", "G6 an acquire whose context has ended grants nothing", endsWith(context.Cause)},
	{"names the context's error, not its cause", "G6 an acquire whose context has ended grants nothing", endsWith(func(ctx context.Context) error {
		return fmt.Errorf("%w: %w", lease.ErrUnavailable, ctx.Err())
	})},
	{"refuses and gives up at once", "G6 an acquire whose context has ended grants nothing", endsWith(func(ctx context.Context) error {
		return fmt.Errorf("%w: %w: %w", lease.ErrHeld, lease.ErrUnavailable, context.Cause(ctx))
	})},
	{"releases and says unavailable", "G6 a renewal or release whose context has ended ends nothing", func(s *memstore.Store) hooks {
		return hooks{release: func(ctx context.Context, g lease.Grant) error {
			if ctx.Err() != nil {
				s.Release(bg, g)
			}
			return s.Release(ctx, g)
		}}
	}},
	{"fails after it was closed, but not as closed", "a closed store says that it is closed", func(s *memstore.Store) hooks {
		return hooks{renew: func(ctx context.Context, g lease.Grant, ttl time.Duration) (lease.Grant, error) {
			got, err := s.Renew(ctx, g, ttl)
			if errors.Is(err, lease.ErrClosed) {
				err = lease.ErrUnavailable
			}
			return got, err
		}}
	}},
	{"closes once only", "a closed store says that it is closed", func(s *memstore.Store) hooks {
		closed := false
		return hooks{close: func() error {
			if closed {
				return lease.ErrClosed
			}
			closed = true
			return s.Close()
		}}
	}},
}

// faults changes the errors for bad input of every verb.
func faults(change func(bad *lease.InvalidError) error) func(s *memstore.Store) hooks {
	of := func(err error) error {
		var bad *lease.InvalidError
		if errors.As(err, &bad) {
			return change(bad)
		}
		return err
	}
	return func(s *memstore.Store) hooks {
		return hooks{
			acquire: func(ctx context.Context, name, owner string, ttl time.Duration) (lease.Grant, error) {
				g, err := s.Acquire(ctx, name, owner, ttl)
				return g, of(err)
			},
			wait: func(ctx context.Context, name, owner string, ttl time.Duration) (lease.Grant, error) {
				g, err := s.AcquireWait(ctx, name, owner, ttl)
				return g, of(err)
			},
			renew: func(ctx context.Context, g lease.Grant, ttl time.Duration) (lease.Grant, error) {
				got, err := s.Renew(ctx, g, ttl)
				return got, of(err)
			},
			release: func(ctx context.Context, g lease.Grant) error { return of(s.Release(ctx, g)) },
			put:     func(ctx context.Context, g lease.Grant, data []byte) error { return of(s.Put(ctx, g, data)) },
			get: func(ctx context.Context, name string) (lease.Record, error) {
				r, err := s.Get(ctx, name)
				return r, of(err)
			},
			watch: func(ctx context.Context, prefix string, after uint64, fn func(lease.Event) error) error {
				return of(s.Watch(ctx, prefix, after, fn))
			},
		}
	}
}

var bare = faults(func(*lease.InvalidError) error { return lease.ErrInvalid })

// lenient mends the arguments of an acquire.
func lenient(mend func(name, owner string, ttl time.Duration) (string, string, time.Duration)) func(s *memstore.Store) hooks {
	return func(s *memstore.Store) hooks {
		return hooks{acquire: func(ctx context.Context, name, owner string, ttl time.Duration) (lease.Grant, error) {
			n, o, d := mend(name, owner, ttl)
			g, err := s.Acquire(ctx, n, o, d)
			if err == nil {
				g.Name, g.Owner, g.TTL = name, owner, ttl
			}
			return g, err
		}}
	}
}

const badAcquire = "G8 an acquire with bad input names the fields"

var invalidMutants = []mutant{
	{"says a bare ErrInvalid to acquire", badAcquire, bare},
	{"says a bare ErrInvalid to a waiter", "G8 a waiting acquire with bad input names the fields", bare},
	{"says a bare ErrInvalid to renew", "G8 a renewal with bad input names the fields", bare},
	{"says a bare ErrInvalid to release", "G8 a release with bad input names the fields", bare},
	{"says a bare ErrInvalid to put", "G8 a put with bad input names the fields", bare},
	{"says a bare ErrInvalid to get", "G8 a read with bad input names the fields", bare},
	{"says a bare ErrInvalid to watch", "G8 a watch with a bad prefix names the field", bare},
	{"names the first fault only", badAcquire, faults(func(bad *lease.InvalidError) error { bad.Faults = bad.Faults[:1]; return bad })},
	{"does not say what is allowed", badAcquire, faults(func(bad *lease.InvalidError) error { bad.Faults[0].Allowed = ""; return bad })},
	{"is silent about a bad release", "G8 a release with bad input names the fields", faults(func(*lease.InvalidError) error { return nil })},
	{"calls bad input not found", "G8 a renewal with bad input names the fields", faults(func(*lease.InvalidError) error { return lease.ErrNotFound })},
	{"trims names", badAcquire, lenient(func(n, o string, d time.Duration) (string, string, time.Duration) {
		return strings.TrimSpace(n), o, d
	})},
	{"cuts names", badAcquire, lenient(func(n, o string, d time.Duration) (string, string, time.Duration) {
		return strings.ToValidUTF8(n[:min(len(n), 255)], ""), o, d
	})},
	{"mends the encoding of owners", badAcquire, lenient(func(n, o string, d time.Duration) (string, string, time.Duration) {
		return n, strings.ToValidUTF8(o, "\ufffd"), d
	})},
	{"drops control characters", badAcquire, lenient(func(n, o string, d time.Duration) (string, string, time.Duration) {
		return strings.ReplaceAll(n, "\x00", ""), o, d
	})},
	{"rounds the ttl", badAcquire, lenient(func(n, o string, d time.Duration) (string, string, time.Duration) {
		return n, o, d.Truncate(time.Millisecond)
	})},
	{"has a default ttl", badAcquire, lenient(func(n, o string, d time.Duration) (string, string, time.Duration) {
		if d == 0 {
			d = time.Minute
		}
		return n, o, d
	})},
	{"caps the ttl", badAcquire, lenient(func(n, o string, d time.Duration) (string, string, time.Duration) {
		return n, o, min(d, 24*time.Hour)
	})},
}

const byByte = "G8 names are compared byte by byte"

func fold(change func(string) string) func(s *memstore.Store) hooks {
	return lenient(func(n, o string, d time.Duration) (string, string, time.Duration) { return change(n), o, d })
}

var nameMutants = []mutant{
	{"folds the case of names", byByte, fold(strings.ToLower)},
	{"skips invisible characters in names", byByte, fold(strings.NewReplacer("\u200b", "", "\ufeff", "").Replace)},
	{"normalises names", byByte, fold(strings.NewReplacer("e\u0301", "\u00e9").Replace)},
	{"squeezes spaces in names", byByte, fold(strings.NewReplacer("  ", " ").Replace)},
	{"unescapes names", byByte, fold(strings.NewReplacer("%20", " ", "a+b", "a b").Replace)},
	{"unquotes names", byByte, fold(strings.NewReplacer("''", "'").Replace)},
	{"cuts long names", byByte, fold(func(s string) string { return s[:min(len(s), 254)] })},
	{"cleans paths in names", byByte, fold(func(s string) string { return strings.TrimRight(s, "/") })},
	{"folds the case of owners", "G8 owners are compared byte by byte", lenient(func(n, o string, d time.Duration) (string, string, time.Duration) {
		return n, strings.ToLower(o), d
	})},
}
