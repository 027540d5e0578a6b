package sqltest

import (
	"database/sql"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/raftlease/raftlease/lease"
	"github.com/raftlease/raftlease/sqlstore"
)

// patience bounds the wait for anything that must happen.
const patience = 30 * time.Second

// poll calls done until it returns true.
func poll(t testing.TB, what string, done func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); !done(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("%s: not within %v", what, patience)
		}
	}
}

// timeIsUp ends the lease of name as if its ttl had passed on the database's
// clock, or as if that clock had been set forward.
func (d database) timeIsUp(t testing.TB, name string) {
	t.Helper()
	d.do(t, "UPDATE "+d.table+" SET expires = 1 WHERE name = '"+name+"'")
}

// count returns the number that a query returns.
func (d database) count(t testing.TB, query string) (n int64) {
	t.Helper()
	if err := d.QueryRowContext(bg, query).Scan(&n); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}

// passed waits until the lease of name has expired, by the database's clock.
func (d database) passed(t testing.TB, name string) {
	t.Helper()
	query := "SELECT count(*) FROM " + d.table + " WHERE name = '" + name + "' AND expires > " + clockOf(d.dialect)
	poll(t, "the end of "+name, func() bool { return d.count(t, query) == 0 })
}

func clockOf(d sqlstore.Dialect) string {
	switch d.String() {
	case "postgres":
		return "extract(epoch FROM clock_timestamp()) * 1000"
	case "sqlserver":
		return "DATEDIFF_BIG(millisecond, '1970-01-01T00:00:00', SYSUTCDATETIME())"
	}
	return "(julianday('now') - 2440587.5) * 86400000.0"
}

// lockRow locks the lease of name as an operator's session may, without changing
// it, until the returned transaction ends.
func (d database) lockRow(t testing.TB, name string) *sql.Tx {
	t.Helper()
	tx := d.begin(t)
	text := "UPDATE " + d.table + " SET updated = updated WHERE name = '" + name + "'"
	switch d.dialect.String() {
	case "postgres":
		text = "SELECT FROM " + d.table + " WHERE name = '" + name + "' FOR UPDATE"
	case "sqlserver":
		text = "SELECT name FROM " + d.table + " WITH (UPDLOCK) WHERE name = '" + name + "'"
	}
	if _, err := tx.ExecContext(bg, text); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return tx
}

// someoneWaits waits until a statement waits for a lock, where the database can
// be asked that.
func (d database) someoneWaits(t testing.TB) {
	t.Helper()
	if d.dialect.String() != "postgres" {
		return
	}
	poll(t, "a statement that waits for a lock", func() bool {
		return d.count(t, "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%"+d.table+"%'") > 0
	})
}

// isLost checks that a call told the owner of g that it is lost.
func isLost(t testing.TB, what string, err error, g lease.Grant, reason lease.Reason) {
	t.Helper()
	var l *lease.LostError
	if !errors.As(err, &l) {
		t.Fatalf("%s: error %v, want a *lease.LostError", what, err)
	}
	if l.Name != g.Name || l.Owner != g.Owner || l.Token != g.Token || l.Reason != reason {
		t.Errorf("%s: %+v, want name %q, owner %q, token %d, reason %q", what, *l, g.Name, g.Owner, g.Token, reason)
	}
}

// larger checks that tokens rose (G2).
func larger(t testing.TB, g, earlier lease.Grant) {
	t.Helper()
	if g.Token <= earlier.Token {
		t.Errorf("%q: token %d granted after %d, want a larger one (G2)", g.Name, g.Token, earlier.Token)
	}
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }
