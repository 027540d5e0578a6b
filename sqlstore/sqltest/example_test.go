package sqltest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/raftlease/raftlease/lease"
	"github.com/raftlease/raftlease/sqlstore"
)

// A job keeps its result in the database that also has the lease. Check makes
// each of its transactions exclusive, however late the process comes.
func ExampleStore_Check() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "app.db")+"?_pragma=journal_mode(wal)&_pragma=busy_timeout(5000)")
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	store, err := sqlstore.Open(db, sqlstore.SQLite)
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	if err := store.EnsureSchema(ctx); err != nil {
		log.Fatal(err)
	}
	if _, err := db.Exec(`CREATE TABLE report (day TEXT PRIMARY KEY, sent_by TEXT)`); err != nil {
		log.Fatal(err)
	}

	send := func(g lease.Grant, day string) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		if err := store.Check(ctx, tx, g); err != nil {
			return err
		}
		if _, err := tx.Exec(`INSERT INTO report VALUES (?, ?)`, day, g.Owner); err != nil {
			return err
		}
		return tx.Commit()
	}

	a, err := store.Acquire(ctx, "nightly report", "replica-a", 30*time.Second)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("a:", send(a, "Monday"))

	// a is gone for a while, its lease ends, and b takes over.
	if err := store.Release(ctx, a); err != nil {
		log.Fatal(err)
	}
	b, err := store.Acquire(ctx, "nightly report", "replica-b", 30*time.Second)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("b:", send(b, "Tuesday"))
	fmt.Println("a is lost:", errors.Is(send(a, "Wednesday"), lease.ErrLost))

	// Output:
	// a: <nil>
	// b: <nil>
	// a is lost: true
}
