package sqltest

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"
	"time"

	_ "github.com/microsoft/go-mssqldb"
	_ "modernc.org/sqlite"

	"github.com/raftlease/raftlease/lease"
	"github.com/raftlease/raftlease/sqlstore"
)

var bg = context.Background()

// sqlserverDSN names a server on which the tests may create tables.
const sqlserverDSN = "RAFTLEASE_SQLSERVER_DSN"

// database is where a test works: a table of its own.
type database struct {
	*sql.DB
	dialect sqlstore.Dialect
	table   string
	driver  string
	dsn     string
}

// open returns the database at that address.
func open(t testing.TB, d sqlstore.Dialect, driver, dsn, table string) database {
	t.Helper()
	return database{DB: openDB(t, driver, dsn), dialect: d, table: table, driver: driver, dsn: dsn}
}

// again returns another handle, as another process would have.
func (d database) again(t testing.TB) *sql.DB {
	t.Helper()
	return openDB(t, d.driver, d.dsn)
}

// onEach runs a test on every database that there is.
func onEach(t *testing.T, test func(t *testing.T, d database)) {
	t.Helper()
	for _, kind := range []struct {
		name string
		open func(t testing.TB) database
	}{
		{"sqlite", onSQLite}, {"postgres", onPostgres}, {"sqlserver", onSQLServer},
	} {
		t.Run(kind.name, func(t *testing.T) { test(t, kind.open(t)) })
	}
}

func onSQLite(t testing.TB) database {
	t.Helper()
	return onSQLiteWith(t, "&_pragma=busy_timeout(2000)")
}

// onSQLiteWith is a new file, with more parameters for the driver.
func onSQLiteWith(t testing.TB, more string) database {
	t.Helper()
	dsn := "file:" + filepath.Join(t.TempDir(), "leases.db") + "?_pragma=journal_mode(wal)&_pragma=synchronous(off)" + more
	return open(t, sqlstore.SQLite, "sqlite", dsn, sqlstore.DefaultTable)
}

func onPostgres(t testing.TB) database {
	t.Helper()
	return onPostgresWith(t, "")
}

// onPostgresWith is the private server, with more settings for the session.
func onPostgresWith(t testing.TB, more string) database {
	t.Helper()
	return open(t, sqlstore.Postgres, "pgx", postgresServer(t).dsn()+more, uniqueTable())
}

func onSQLServer(t testing.TB) database {
	t.Helper()
	dsn := os.Getenv(sqlserverDSN)
	if dsn == "" {
		t.Skip(sqlserverDSN + " is not set: the statements for SQL Server are not run")
	}
	return open(t, sqlstore.SQLServer, "sqlserver", dsn, uniqueTable())
}

func uniqueTable() string {
	var id [6]byte
	rand.Read(id[:])
	return "leases_" + hex.EncodeToString(id[:])
}

func openDB(t testing.TB, driver, dsn string) *sql.DB {
	t.Helper()
	db, err := sqlOpen(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("close the database: %v", err)
		}
	})
	return db
}

// sqlOpen is sql.Open with as many connections as a small service has.
func sqlOpen(driver, dsn string) (*sql.DB, error) {
	db, err := sql.Open(driver, dsn)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(16)
	db.SetMaxIdleConns(16)
	return db, nil
}

// tokens is the table with the last token.
func (d database) tokens() string { return d.table + "_tokens" }

// store opens a store whose table exists.
func (d database) store(t testing.TB) *sqlstore.Store {
	t.Helper()
	return d.storeAs(t, sqlstore.Config{})
}

func (d database) storeAs(t testing.TB, c sqlstore.Config) *sqlstore.Store {
	t.Helper()
	return d.on(t, d.DB, c)
}

func (d database) on(t testing.TB, db *sql.DB, c sqlstore.Config) *sqlstore.Store {
	t.Helper()
	c.Table = d.table
	s, err := c.Open(db, d.dialect)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.EnsureSchema(bg); err != nil {
		t.Fatal(err)
	}
	return s
}

// do runs a statement behind the store's back.
func (d database) do(t testing.TB, text string, args ...any) {
	t.Helper()
	if _, err := d.ExecContext(bg, text, args...); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

func (d database) begin(t testing.TB) *sql.Tx {
	t.Helper()
	tx, err := d.BeginTx(bg, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() }) // no effect after a commit
	return tx
}

func acquire(t testing.TB, s lease.Store, name, owner string, ttl time.Duration) lease.Grant {
	t.Helper()
	g, err := s.Acquire(bg, name, owner, ttl)
	if err != nil {
		t.Fatalf("acquire %q for %q: %v", name, owner, err)
	}
	return g
}

func release(t testing.TB, s lease.Store, g lease.Grant) {
	t.Helper()
	if err := s.Release(bg, g); err != nil {
		t.Fatalf("release %q: %v", g.Name, err)
	}
}
