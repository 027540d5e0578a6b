package sqlstore

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/raftlease/raftlease/lease"
)

// entry is a record with its data.
type entry struct {
	record
	dataToken int64
	data      []byte
}

func (e *entry) into() []any { return append(e.record.into(), &e.dataToken, &e.data) }

// public returns e for a caller; ok is false when it is free and has no data.
func (e *entry) public(name string) (r lease.Record, ok bool) {
	r.Name = name
	if e.live() {
		r.Owner, r.Token, r.Remaining = e.owner, uint64(e.token), e.remaining()
		r.TTL = time.Duration(e.ttl) * time.Millisecond
	}
	if e.dataToken != 0 {
		r.Data, r.DataToken = e.data, uint64(e.dataToken)
	}
	return r, r.Held() || r.DataToken != 0
}

// Get implements lease.Inspector. Index is not known.
func (s *Store) Get(ctx context.Context, name string) (lease.Record, error) {
	if err := lease.CheckName(name); err != nil {
		return lease.Record{}, err
	}
	var e entry
	found := false
	err := s.retry(ctx, reads, func(ctx context.Context) (err error) {
		found, err = s.row(ctx, s.text.get, []any{name}, e.into()...)
		return err
	})
	if err != nil {
		return lease.Record{}, about("get", name, err)
	}
	r, ok := e.public(name)
	if !found || !ok {
		return lease.Record{}, about("get", name, lease.ErrNotFound)
	}
	return r, nil
}

// List implements lease.Inspector.
func (s *Store) List(ctx context.Context, prefix string) ([]lease.Record, error) {
	if err := lease.CheckPrefix(prefix); err != nil {
		return nil, err
	}
	list := []lease.Record{}
	err := s.retry(ctx, reads, func(ctx context.Context) error {
		list = list[:0]
		if strings.ContainsFunc(prefix, unicode.IsControl) {
			return nil // no name has one, and not every database takes one
		}
		return s.rows(ctx, s.text.list, s.dialect.prefix(prefix), func(scan func(to ...any) error) error {
			var e entry
			var name string
			if err := scan(append([]any{&name}, e.into()...)...); err != nil {
				return err
			}
			if r, ok := e.public(name); ok && strings.HasPrefix(name, prefix) {
				list = append(list, r)
			}
			return nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("list leases: %w", err)
	}
	// SQL Server orders by units of UTF-16.
	slices.SortFunc(list, func(a, b lease.Record) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}
