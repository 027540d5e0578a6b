package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/raftlease/raftlease/internal/clock"
	"github.com/raftlease/raftlease/lease"
)

var bg = context.Background()

// answer is what the fake database says to one statement.
type answer struct {
	rows [][]driver.Value
	err  error // instead of rows
	last error // after the rows, as from a commit
}

// fake is a database that answers as a test says.
type fake struct {
	// open is called for each new connection. Nil means that it succeeds.
	open func() error
	// reply is called for each statement, one at a time.
	reply func(ctx context.Context, text string, args []driver.NamedValue) answer

	mu    sync.Mutex
	conns int
}

// on returns a Store that talks to f.
func (f *fake) on(t testing.TB, d Dialect, c Config) *Store {
	t.Helper()
	db := sql.OpenDB(f)
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	s, err := c.Open(db, d)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Connect implements driver.Connector.
func (f *fake) Connect(context.Context) (driver.Conn, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.open != nil {
		if err := f.open(); err != nil {
			return nil, err
		}
	}
	f.conns++
	return fakeConn{f}, nil
}

// Driver implements driver.Connector.
func (f *fake) Driver() driver.Driver { panic("not needed") }

type fakeConn struct{ *fake }

func (c fakeConn) Prepare(string) (driver.Stmt, error) { return nil, errors.New("not needed") }
func (c fakeConn) Begin() (driver.Tx, error)           { return nil, errors.New("not needed") }
func (c fakeConn) Close() error                        { return nil }

func (c fakeConn) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	a := c.reply(ctx, text, args)
	if a.err != nil {
		return nil, a.err
	}
	return &fakeRows{answer: a}, nil
}

func (c fakeConn) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	return driver.RowsAffected(0), c.reply(ctx, text, args).err
}

type fakeRows struct{ answer }

func (r *fakeRows) Columns() []string {
	if len(r.rows) == 0 {
		return nil
	}
	return make([]string, len(r.rows[0]))
}
func (r *fakeRows) Close() error { return nil }
func (r *fakeRows) Next(to []driver.Value) error {
	switch {
	case len(r.rows) > 0:
		copy(to, r.rows[0])
		r.rows = r.rows[1:]
		return nil
	case r.last != nil:
		return r.last
	}
	return io.EOF
}

// one is an answer of one row.
func one(values ...driver.Value) answer { return answer{rows: [][]driver.Value{values}} }

// none is an answer without rows.
var none = answer{}

// free and taken are rows of a record as statements.read returns them.
func free(token int64) answer { return one("", token, int64(0), int64(0), int64(5000)) }

func taken(owner string, token int64) answer {
	return one(owner, token, int64(60_000), int64(65_000), int64(5000))
}

// handClock is a holder's clock that a test sets.
type handClock struct {
	mu sync.Mutex
	at clock.Reading
}

func (c *handClock) Now() clock.Reading {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *handClock) moves(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at.Boot += d
}

// Errors as drivers make them.
type (
	sqlState  string                      // pgx, lib/pq
	sqliteErr int                         // modernc.org/sqlite
	sqlError  struct{ number, class int } // go-mssqldb
	unsentErr struct{ error }             // pgx, before anything was sent
)

func (e sqlState) Error() string         { return "SQLSTATE " + string(e) }
func (e sqlState) SQLState() string      { return string(e) }
func (e sqliteErr) Error() string        { return "result code" }
func (e sqliteErr) Code() int            { return int(e) }
func (e sqlError) Error() string         { return "error of SQL Server" }
func (e sqlError) SQLErrorNumber() int32 { return int32(e.number) }
func (e sqlError) SQLErrorClass() uint8  { return uint8(e.class) }
func (unsentErr) SafeToRetry() bool      { return true }

var grantA = lease.Grant{Name: "job", Owner: "a", Token: 7}
