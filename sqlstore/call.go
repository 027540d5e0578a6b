package sqlstore

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/raftlease/raftlease/lease"
)

// verdict is what an error of the database means for one statement.
type verdict int

const (
	unclear verdict = iota // the statement may have been carried out
	undone                 // it was not
	repeat                 // it was not, and will be if it is repeated: a dead-lock, a busy database
	exists                 // it was not, since somebody else was faster
)

// effect says what a statement would do if it were carried out unnoticed.
type effect bool

const (
	reads  effect = false // nothing that a caller could mind
	writes effect = true
)

// errSlow is the cause with which Config.Timeout ends a statement.
var errSlow = errors.New("it took longer than Config.Timeout, with the wait for a connection and for locks")

// notSent is an error of a statement that never left this process.
type notSent struct{ error }

// Unwrap returns the cause.
func (e notSent) Unwrap() error { return e.error }

// retry makes attempts until one needs no repetition (case 24): after
// dead-locks, serialisation failures, a busy database and connections that were
// dead before anything was sent. It gives up when ctx ends. The error is
// ErrUnavailable or ErrUnknownOutcome.
func (s *Store) retry(ctx context.Context, e effect, attempt func(ctx context.Context) error) error {
	for p := (pause{}); ; {
		err := s.attempt(ctx, attempt)
		switch v := s.verdict(err); {
		case err == nil:
			return nil
		case v == repeat && ctx.Err() == nil:
			if waited := p.wait(ctx); waited != nil {
				return fmt.Errorf("%w, after %w", waited, err)
			}
		case v == unclear && e == writes:
			return wrapped(ctx, lease.ErrUnknownOutcome, err)
		default:
			return wrapped(ctx, lease.ErrUnavailable, err)
		}
	}
}

func (s *Store) attempt(ctx context.Context, attempt func(ctx context.Context) error) error {
	if ctx.Err() != nil {
		return notSent{context.Cause(ctx)}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.config.Timeout, errSlow)
	defer cancel()
	err := attempt(ctx)
	if err != nil && context.Cause(ctx) == errSlow {
		return fmt.Errorf("%w: %w", errSlow, err) // drivers say no more than that a deadline passed
	}
	return err
}

// verdict judges an error that may be one of this process's own.
func (s *Store) verdict(err error) verdict {
	var unsent notSent
	var safe interface{ SafeToRetry() bool } // pgx, which has sent nothing then
	switch {
	case err == nil:
		return undone
	case errors.As(err, &unsent):
		if s.dialect.judge(err) == repeat { // opening a connection to SQLite may find it busy
			return repeat
		}
		return undone
	case errors.Is(err, driver.ErrBadConn):
		return repeat
	case errors.As(err, &safe) && safe.SafeToRetry():
		return repeat
	}
	return s.dialect.judge(err)
}

// wrapped adds kind to err, and the reason for which ctx ended.
func wrapped(ctx context.Context, kind, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w: %w: %w", kind, cause, err)
	}
	return fmt.Errorf("%w: %w", kind, err)
}

// row runs a statement on a connection of its own and scans its one row, if
// there is one, to the destinations. It reads to the end of the answer, since
// the error of a commit comes last.
func (s *Store) row(ctx context.Context, text string, args []any, to ...any) (found bool, err error) {
	err = s.rows(ctx, text, args, func(scan func(to ...any) error) error {
		found = true
		return scan(to...)
	})
	return found && err == nil, err
}

// rows runs a statement on a connection of its own and calls each for its rows.
func (s *Store) rows(ctx context.Context, text string, args []any, each func(scan func(to ...any) error) error) error {
	c, err := s.db.Conn(ctx)
	if err != nil {
		return notSent{err}
	}
	defer c.Close()
	rows, err := c.QueryContext(ctx, text, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := each(rows.Scan); err != nil {
			return err
		}
	}
	return errors.Join(rows.Err(), rows.Close())
}

// exec runs a statement that returns nothing.
func (s *Store) exec(ctx context.Context, text string, args ...any) error {
	c, err := s.db.Conn(ctx)
	if err != nil {
		return notSent{err}
	}
	defer c.Close()
	_, err = c.ExecContext(ctx, text, args...)
	return err
}

// Bounds of the pauses between attempts. Jitter keeps those apart that met.
const (
	minPause = time.Millisecond
	maxPause = 64 * time.Millisecond
)

// pause grows from attempt to attempt. The zero value is ready to use.
type pause struct{ next time.Duration }

// wait returns after a while, or earlier with ErrUnavailable when ctx ends.
func (p *pause) wait(ctx context.Context) error {
	p.next = min(max(2*p.next, minPause), maxPause)
	timer := time.NewTimer(rand.N(p.next) + 1)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", lease.ErrUnavailable, context.Cause(ctx))
	}
}
