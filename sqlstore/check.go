package sqlstore

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/raftlease/raftlease/lease"
)

// Check proves within the caller's transaction that g is the live grant, and
// keeps it so: the row is locked until the transaction ends, so nobody else can
// be granted the name before that, also when g's time is up by then. What the
// transaction writes is then written by the one holder, however long its process
// was frozen before (G7). tx has to be of the database that has the table.
//
// Call it first, before the transaction reads anything that it relies on. If the
// error is ErrLost, g is over: roll back. After ErrUnavailable roll back too;
// the transaction may be repeated as a whole. Nothing is retried inside, since
// most databases give a transaction up after an error.
//
// A transaction that stays open keeps the name from everybody else, and on SQL
// Server and SQLite the holder's own renewals waiting too: keep it shorter than
// a third of the ttl there. Calls on the Store from inside it can wait for it.
func (s *Store) Check(ctx context.Context, tx *sql.Tx, g lease.Grant) error {
	if tx == nil {
		panic("sqlstore: Store.Check: tx is nil")
	}
	if err := lease.CheckGrant(g); err != nil {
		return err
	}
	r, err := locked(ctx, tx, s.text.check, g.Name)
	switch {
	case err != nil:
		return about("check", g.Name, wrapped(ctx, lease.ErrUnavailable, err))
	case r == nil || !r.of(g):
		return r.lost(g)
	}
	return nil
}

// locked returns the row of name, locked by tx, or nil.
func locked(ctx context.Context, tx *sql.Tx, text, name string) (*record, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	rows, err := tx.QueryContext(ctx, text, name)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var r *record
	for rows.Next() {
		r = new(record)
		if err := rows.Scan(r.into()...); err != nil {
			return nil, err
		}
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("lock the row: %w", err)
	}
	return r, nil
}
