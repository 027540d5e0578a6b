package sqltest

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/raftlease/raftlease/lease"
	"github.com/raftlease/raftlease/sqlstore"
)

// delayed is the way to a database on which a statement can be delayed: its
// caller is told that the connection broke, and it is carried out later.
type delayed struct {
	driver.Connector

	mu    sync.Mutex
	delay int // how many more statements pass before one is delayed
	text  string
	args  []any
}

// Connect implements driver.Connector.
func (d *delayed) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := d.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &delayedConn{Conn: c, way: d}, nil
}

type delayedConn struct {
	driver.Conn
	way *delayed
}

// QueryContext implements driver.QueryerContext.
func (c *delayedConn) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	if c.way.takes(text, args) {
		return nil, io.ErrUnexpectedEOF
	}
	return c.Conn.(driver.QueryerContext).QueryContext(ctx, text, args)
}

func (d *delayed) takes(text string, args []driver.NamedValue) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.delay--
	if d.delay != -1 {
		return false
	}
	d.text, d.args = text, nil
	for _, a := range args {
		d.args = append(d.args, a.Value)
	}
	return true
}

// delays arranges that the statement after n others is delayed.
func (d *delayed) delays(n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.delay = n
}

// arrives carries the delayed statement out.
func (d *delayed) arrives(t testing.TB, db *sql.DB) {
	t.Helper()
	if d.text == "" {
		t.Fatal("no statement was delayed")
	}
	if _, err := db.ExecContext(bg, d.text, d.args...); err != nil {
		t.Fatalf("the delayed statement: %v", err)
	}
}

// Cases 8 and 12, G6: a statement whose caller gave up arrives at last, after
// others had the name. It must do nothing.
func TestStore_LateStatement(t *testing.T) {
	onEach(t, func(t *testing.T, d database) {
		good := d.store(t)
		way := &delayed{Connector: dsnConnector{d.DB.Driver(), d.dsn}}
		db := sql.OpenDB(way)
		t.Cleanup(func() { db.Close() })
		bad := d.on(t, db, sqlstore.Config{})

		lateAcquire := func(t *testing.T, name string, statementsBefore int) {
			way.delays(statementsBefore)
			if _, err := bad.Acquire(bg, name, "a", time.Hour); !errors.Is(err, lease.ErrUnknownOutcome) {
				t.Fatalf("acquire: error %v, want lease.ErrUnknownOutcome", err)
			}
		}
		free := func(t *testing.T, name string) {
			t.Helper()
			if r, err := good.Get(bg, name); !errors.Is(err, lease.ErrNotFound) {
				t.Errorf("%+v, error %v, want a free name", r, err)
			}
		}
		t.Run("the first acquire of a name", func(t *testing.T) {
			lateAcquire(t, "new", 1) // the look; the record is made with Exec
			release(t, good, acquire(t, good, "new", "a", time.Minute))
			way.arrives(t, d.DB)
			free(t, "new")
		})
		t.Run("an acquire", func(t *testing.T) {
			release(t, good, acquire(t, good, "used", "b", time.Minute))
			lateAcquire(t, "used", 1)
			release(t, good, acquire(t, good, "used", "a", time.Minute))
			way.arrives(t, d.DB)
			free(t, "used")
		})
		t.Run("a renewal", func(t *testing.T) {
			g := acquire(t, good, "renewed", "a", time.Minute)
			way.delays(0)
			if _, err := bad.Renew(bg, g, time.Hour); !errors.Is(err, lease.ErrUnknownOutcome) {
				t.Fatalf("renew: error %v, want lease.ErrUnknownOutcome", err)
			}
			release(t, good, g)
			way.arrives(t, d.DB)
			free(t, "renewed")
		})
		t.Run("a release", func(t *testing.T) {
			g := acquire(t, good, "released", "a", time.Minute)
			way.delays(0)
			if err := bad.Release(bg, g); !errors.Is(err, lease.ErrUnknownOutcome) {
				t.Fatalf("release: error %v, want lease.ErrUnknownOutcome", err)
			}
			release(t, good, g)
			next := acquire(t, good, "released", "a", time.Minute)
			way.arrives(t, d.DB)
			if r, err := good.Get(bg, "released"); err != nil || r.Token != next.Token {
				t.Errorf("%+v, error %v, want the grant with token %d", r, err, next.Token)
			}
		})
	})
}

// dsnConnector is driver.Connector for a driver that is asked by name.
type dsnConnector struct {
	from driver.Driver
	dsn  string
}

// Connect implements driver.Connector.
func (c dsnConnector) Connect(context.Context) (driver.Conn, error) { return c.from.Open(c.dsn) }

// Driver implements driver.Connector.
func (c dsnConnector) Driver() driver.Driver { return c.from }
