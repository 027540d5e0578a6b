package sqltest

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/raftlease/raftlease/lease"
	"github.com/raftlease/raftlease/sqlstore"
)

// hostile is every database in a setting that makes its errors likely: writers
// that find SQLite busy are told so at once, and PostgreSQL refuses what it
// cannot serialise. Each also differs in what must not matter.
func hostile(t *testing.T, test func(t *testing.T, d database)) {
	t.Helper()
	t.Run("sqlite without a busy timeout", func(t *testing.T) {
		test(t, onSQLiteWith(t, "&_pragma=busy_timeout(0)"))
	})
	t.Run("postgres with serialisable transactions", func(t *testing.T) {
		test(t, onPostgresWith(t, " default_transaction_isolation=serializable timezone=Asia/Kathmandu"+
			" default_query_exec_mode=simple_protocol")) // the last as poolers of transactions need it
	})
}

// Case 24: nothing that a repetition cures reaches the caller.
func TestStore_ContractOnHostileDatabases(t *testing.T) {
	hostile(t, func(t *testing.T, d database) { contract(d, sqlstore.Config{}).Run(t) })
}

// Case 24, G1: of 64 first acquires of a name one wins, and the others are told
// who did.
func TestStore_FirstAcquires(t *testing.T) {
	const contenders, handles, rounds = 64, 4, 10
	run := func(t *testing.T, d database) {
		stores := []*sqlstore.Store{d.store(t)}
		for len(stores) < handles {
			stores = append(stores, d.on(t, d.again(t), sqlstore.Config{}))
		}
		for round := range rounds {
			name := fmt.Sprint("job ", round)
			won := make([]lease.Grant, contenders)
			refused := make([]*lease.HeldError, contenders)
			var all sync.WaitGroup
			for i := range contenders {
				all.Go(func() {
					var err error
					won[i], err = stores[i%handles].Acquire(bg, name, fmt.Sprint("owner ", i), time.Hour)
					if err != nil && !errors.As(err, &refused[i]) {
						t.Errorf("contender %d: %v", i, err)
					}
				})
			}
			all.Wait()
			oneWon(t, won, refused)
		}
	}
	onEach(t, run)
	hostile(t, run)
}

func oneWon(t testing.TB, won []lease.Grant, refused []*lease.HeldError) {
	t.Helper()
	var winner lease.Grant
	for _, g := range won {
		switch {
		case g.Token == 0:
		case winner.Token != 0:
			t.Errorf("%q won with token %d and %q with %d (G1)", winner.Owner, winner.Token, g.Owner, g.Token)
		default:
			winner = g
		}
	}
	if winner.Token == 0 {
		t.Fatal("nobody won")
	}
	for i, h := range refused {
		if h != nil && (h.Owner != winner.Owner || h.Token != winner.Token) {
			t.Errorf("contender %d was refused for %q with token %d, want %q, %d", i, h.Owner, h.Token, winner.Owner, winner.Token)
		}
	}
}

// Case 24: a real dead-lock, in which the store is the one that is told.
func TestStore_DeadLock(t *testing.T) {
	d := onPostgresWith(t, " deadlock_timeout=2s")
	s := d.store(t)
	first := acquire(t, s, "job", "a", time.Minute)
	release(t, s, first)

	tx := d.begin(t)
	in := func(text string) {
		t.Helper()
		if _, err := tx.ExecContext(bg, text); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	in("SET LOCAL deadlock_timeout = '1h'")
	in("SELECT FROM " + d.tokens() + " FOR UPDATE")
	done := make(chan error, 1)
	var g lease.Grant
	go func() {
		var err error
		g, err = s.Acquire(bg, "job", "b", time.Minute) // locks the record and waits for the token
		done <- err
	}()
	d.someoneWaits(t)
	in("SELECT FROM " + d.table + " WHERE name = 'job' FOR UPDATE")
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatalf("acquire after a dead-lock: %v", err)
	}
	larger(t, g, first)
	if n := d.count(t, "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"); n == 0 {
		t.Log("the server has not counted the dead-lock yet")
	}
}

// Many processes of a service start at once.
func TestStore_EnsureSchemaAtOnce(t *testing.T) {
	run := func(t *testing.T, d database) {
		var all sync.WaitGroup
		for range 16 {
			all.Go(func() {
				c := sqlstore.Config{Table: d.table}
				s, err := c.Open(d.DB, d.dialect)
				if err != nil {
					t.Error(err)
					return
				}
				if err := s.EnsureSchema(bg); err != nil {
					t.Errorf("ensure the schema: %v", err)
				}
			})
		}
		all.Wait()
		acquire(t, d.store(t), "job", "a", time.Minute)
	}
	onEach(t, run)
	hostile(t, run)
}
