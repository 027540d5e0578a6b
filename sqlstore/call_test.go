package sqlstore

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/raftlease/raftlease/lease"
)

// G6: whether a statement may have been carried out follows from the error.
func TestStore_ErrorsOfTheDatabase(t *testing.T) {
	text := errors.New("connection reset by peer")
	const again = "repeated"
	unavailable, unknown := lease.ErrUnavailable.Error(), lease.ErrUnknownOutcome.Error()
	for _, c := range []struct {
		dialect Dialect
		err     error
		want    string
	}{
		{Postgres, sqlState("40P01"), again},
		{Postgres, sqlState("40001"), again},
		{Postgres, sqlState("55P03"), again},
		{Postgres, sqlState("42P01"), unavailable}, // no such table
		{Postgres, sqlState("25006"), unavailable}, // read-only
		{Postgres, sqlState("57014"), unavailable}, // cancelled
		{Postgres, sqlState("40003"), unknown},
		{Postgres, sqlState("08006"), unknown},
		{Postgres, sqlState("57P01"), unknown},
		{Postgres, sqlState("58030"), unknown},
		{Postgres, sqlState("XX000"), unknown},
		{Postgres, text, unknown},
		{Postgres, io.ErrUnexpectedEOF, unknown},
		{Postgres, unsentErr{text}, again},
		{Postgres, fmt.Errorf("wrapped: %w", sqlState("40P01")), again},
		{SQLite, sqliteErr(5), again},           // busy
		{SQLite, sqliteErr(5 | 2<<8), again},    // busy snapshot
		{SQLite, sqliteErr(6), again},           // locked
		{SQLite, sqliteErr(1), unavailable},     // no such table
		{SQLite, sqliteErr(8), unavailable},     // read-only
		{SQLite, sqliteErr(13), unavailable},    // full
		{SQLite, sqliteErr(9), unknown},         // interrupted
		{SQLite, sqliteErr(10 | 4<<8), unknown}, // i/o, on fsync
		{SQLite, errors.New("database is locked"), again},
		{SQLite, errors.New("database table is locked"), again},
		{SQLite, text, unknown},
		{SQLServer, sqlError{1205, 13}, again},
		{SQLServer, sqlError{1222, 16}, again},
		{SQLServer, sqlError{3960, 16}, again},
		{SQLServer, sqlError{208, 16}, unavailable}, // no such table
		{SQLServer, sqlError{3906, 16}, unavailable},
		{SQLServer, sqlError{596, 21}, unknown}, // the session was ended
		{SQLServer, text, unknown},
		{SQLServer, driver.ErrBadConn, again},
	} {
		for _, last := range []bool{false, true} {
			name := fmt.Sprintf("%s %v", c.dialect, c.err)
			if last {
				name += " after the row"
			}
			t.Run(name, func(t *testing.T) {
				calls := 0
				f := &fake{reply: func(context.Context, string, []driver.NamedValue) answer {
					switch calls++; {
					case calls > 1:
						return one(int64(7))
					case last:
						return answer{rows: [][]driver.Value{{int64(7)}}, last: c.err}
					}
					return answer{err: c.err}
				}}
				err := f.on(t, c.dialect, Config{}).Release(bg, grantA)
				got := again
				for _, kind := range []error{lease.ErrUnavailable, lease.ErrUnknownOutcome} {
					if errors.Is(err, kind) {
						got = kind.Error()
					}
				}
				if got != c.want || (calls > 1) != (c.want == again) {
					t.Errorf("error %v after %d calls, want: %s", err, calls, c.want)
				}
				if err != nil && !errors.Is(err, c.err) {
					t.Errorf("error %v does not wrap that of the driver", err)
				}
			})
		}
	}
}

// A statement that only reads has no unknown outcome.
func TestStore_ReadsAreNeverUnknown(t *testing.T) {
	f := &fake{reply: func(context.Context, string, []driver.NamedValue) answer { return answer{err: io.ErrUnexpectedEOF} }}
	s := f.on(t, Postgres, Config{})
	_, get := s.Get(bg, "job")
	_, list := s.List(bg, "")
	_, acquire := s.Acquire(bg, "job", "a", time.Minute) // stops at its first look
	for what, err := range map[string]error{"get": get, "list": list, "acquire": acquire, "schema": s.EnsureSchema(bg)} {
		if !errors.Is(err, lease.ErrUnavailable) || errors.Is(err, lease.ErrUnknownOutcome) {
			t.Errorf("%s: error %v, want lease.ErrUnavailable", what, err)
		}
	}
}

// Nothing is sent where no connection can be made.
func TestStore_NoConnection(t *testing.T) {
	refused := errors.New("connection refused")
	f := &fake{open: func() error { return refused }}
	s := f.on(t, Postgres, Config{})
	_, err := s.Renew(bg, grantA, time.Minute)
	if !errors.Is(err, lease.ErrUnavailable) || !errors.Is(err, refused) {
		t.Errorf("renew: error %v, want lease.ErrUnavailable and the cause", err)
	}
}

// G6: a context that ends says whether anything was under way, and why it ended.
func TestStore_ContextEnds(t *testing.T) {
	cause := errors.New("shutting down")
	check := func(t *testing.T, s *Store, ctx context.Context, kind error) {
		t.Helper()
		_, err := s.Renew(ctx, grantA, time.Minute)
		if !errors.Is(err, kind) || !errors.Is(err, cause) {
			t.Errorf("renew: error %v, want %v and the cause", err, kind)
		}
	}
	t.Run("before", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(bg)
		cancel(cause)
		check(t, (&fake{}).on(t, Postgres, Config{}), ctx, lease.ErrUnavailable)
	})
	t.Run("during the statement", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(bg)
		f := &fake{reply: func(sent context.Context, _ string, _ []driver.NamedValue) answer {
			cancel(cause)
			<-sent.Done()
			return answer{err: sent.Err()}
		}}
		check(t, f.on(t, Postgres, Config{}), ctx, lease.ErrUnknownOutcome)
	})
	t.Run("between attempts", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(bg)
		f := &fake{reply: func(context.Context, string, []driver.NamedValue) answer {
			cancel(cause)
			return answer{err: sqlState("40P01")}
		}}
		check(t, f.on(t, Postgres, Config{}), ctx, lease.ErrUnavailable)
	})
}

func TestStore_SlowStatement(t *testing.T) {
	f := &fake{reply: func(sent context.Context, _ string, _ []driver.NamedValue) answer {
		<-sent.Done()
		return answer{err: sent.Err()}
	}}
	s := f.on(t, Postgres, Config{Timeout: time.Millisecond})
	err := s.Release(bg, grantA)
	if !errors.Is(err, lease.ErrUnknownOutcome) || !strings.Contains(err.Error(), "Config.Timeout") {
		t.Errorf("release: error %v, want lease.ErrUnknownOutcome that names Config.Timeout", err)
	}
}

// Connections that died while they were idle are replaced.
func TestStore_DeadConnections(t *testing.T) {
	const dead = 5
	calls := 0
	f := &fake{reply: func(context.Context, string, []driver.NamedValue) answer {
		if calls++; calls <= dead {
			return answer{err: driver.ErrBadConn}
		}
		return one(int64(7))
	}}
	if _, err := f.on(t, Postgres, Config{}).Renew(bg, grantA, time.Minute); err != nil {
		t.Error(err)
	}
	if f.conns != dead+1 {
		t.Errorf("%d connections were opened, want %d", f.conns, dead+1)
	}
}
