package sqlstore

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/raftlease/raftlease/lease"
)

// Store grants leases that are rows of a table. Safe for concurrent use, by any
// number of Stores and processes on one table. It keeps no state, runs no
// goroutine and has nothing to close; the caller owns the database handle.
type Store struct {
	db      *sql.DB
	dialect Dialect
	text    statements
	config  Config // with defaults
}

var (
	_ lease.Store     = (*Store)(nil)
	_ lease.Inspector = (*Store)(nil)
	_ lease.DataStore = (*Store)(nil)
)

// Open returns a Store on the default table of db. See Config.Open.
func Open(db *sql.DB, d Dialect) (*Store, error) { return Config{}.Open(db, d) }

// Guarantee returns lease.Eventual. The package comment says what that means.
func (s *Store) Guarantee() lease.Guarantee { return lease.Eventual }

// Schema returns the text that EnsureSchema runs.
func (s *Store) Schema() string { return schemaText(s.text) }

// EnsureSchema creates the tables that the store needs unless they are there.
// It changes nothing that exists, and where everything exists it needs no right
// but to read. Many processes may call it at once. A row of the last token that
// is gone is made again from the tokens that the leases carry.
func (s *Store) EnsureSchema(ctx context.Context) error {
	if s.complete(ctx) {
		return nil
	}
	for _, text := range s.text.schema {
		err := s.retry(ctx, reads, func(ctx context.Context) error {
			err := s.exec(ctx, text)
			if err != nil && s.dialect.judge(err) == exists {
				return nil // somebody else was faster
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("create the tables of leases: %w", err)
		}
	}
	return nil
}

// complete reports whether everything that the store needs is there.
func (s *Store) complete(ctx context.Context) bool {
	var token, none int64
	ok := false
	err := s.retry(ctx, reads, func(ctx context.Context) (err error) {
		ok, err = s.row(ctx, s.text.probe, nil, &token, &none)
		return err
	})
	return err == nil && ok
}
