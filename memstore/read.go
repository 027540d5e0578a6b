package memstore

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/raftlease/raftlease/lease"
)

// Get implements lease.Inspector.
func (s *Store) Get(ctx context.Context, name string) (lease.Record, error) {
	if err := lease.CheckName(name); err != nil {
		return lease.Record{}, err
	}
	now, err := s.begin(ctx)
	if err != nil {
		return lease.Record{}, fmt.Errorf("get lease %q: %w", name, err)
	}
	defer s.finish(now)
	r := s.records[name]
	if r == nil {
		return lease.Record{}, fmt.Errorf("get lease %q: %w", name, lease.ErrNotFound)
	}
	return outside(r.record(now)), nil
}

// List implements lease.Inspector.
func (s *Store) List(ctx context.Context, prefix string) ([]lease.Record, error) {
	if err := lease.CheckPrefix(prefix); err != nil {
		return nil, err
	}
	now, err := s.begin(ctx)
	if err != nil {
		return nil, fmt.Errorf("list leases: %w", err)
	}
	defer s.finish(now)
	return s.list(prefix, now), nil
}

// Put implements lease.DataStore.
func (s *Store) Put(ctx context.Context, g lease.Grant, data []byte) error {
	if err := lease.CheckPut(g, data); err != nil {
		return err
	}
	now, err := s.begin(ctx)
	if err != nil {
		return fmt.Errorf("put data of lease %q: %w", g.Name, err)
	}
	defer s.finish(now)
	r := s.live(g)
	if r == nil {
		return s.lost(g)
	}
	r.data, r.dataToken = nil, 0
	if len(data) > 0 {
		r.data, r.dataToken = bytes.Clone(data), g.Token
	}
	s.publish(lease.EventData, r, now)
	return nil
}

// list returns the records with that prefix in byte order of their names.
func (s *Store) list(prefix string, now time.Duration) []lease.Record {
	out := []lease.Record{}
	for _, name := range slices.Sorted(maps.Keys(s.records)) {
		if strings.HasPrefix(name, prefix) {
			out = append(out, outside(s.records[name].record(now)))
		}
	}
	return out
}

// outside returns r for a caller, who may change its data.
func outside(r lease.Record) lease.Record {
	r.Data = bytes.Clone(r.Data)
	return r
}
