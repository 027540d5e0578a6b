package memstore

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/raftlease/raftlease/lease"
)

// historyLen is how many of the last changes a Store keeps for watchers at
// least; at most it is twice as many. If each of them has the largest data of
// its own, those are 32 MiB.
const historyLen = 256

// history is the last changes of a Store, one event for each index.
type history struct {
	events  []lease.Event // at most twice historyLen, so that it is moved seldom
	index   uint64        // of the last change
	changed chan struct{} // closed at the next change
}

func newHistory() history { return history{changed: make(chan struct{})} }

// since returns the events after an index; ok is false when some of them are
// gone, or when there never was such an index.
func (h *history) since(after uint64) (events []lease.Event, ok bool) {
	missing := h.index - after // events the watcher has not seen
	if after > h.index || missing > uint64(len(h.events)) {
		return nil, false
	}
	return h.events[uint64(len(h.events))-missing:], true
}

// ending says how g ended, as far as it is still known.
func (h *history) ending(g lease.Grant) lease.Reason {
	for _, e := range slices.Backward(h.events) {
		if e.Record.Name != g.Name || e.Record.Token != g.Token || e.Record.Owner != g.Owner {
			continue
		}
		switch e.Kind {
		case lease.EventExpired:
			return lease.ReasonExpired
		case lease.EventReleased:
			return lease.ReasonReleased
		case lease.EventBroken:
			return lease.ReasonBroken
		}
	}
	return lease.ReasonGone
}

// publish records a change of r and wakes the watchers.
func (s *Store) publish(kind lease.EventKind, r *record, now time.Duration) lease.Record {
	h := &s.past
	h.index++
	if kind != lease.EventData {
		r.index = h.index
	}
	rec := r.record(now)
	if len(h.events) == 2*historyLen {
		h.events = slices.Clone(h.events[historyLen:])
	}
	h.events = append(h.events, lease.Event{Index: h.index, Kind: kind, Record: rec})
	close(h.changed)
	h.changed = make(chan struct{})
	return rec
}

// Watch implements lease.Watcher. fn runs on the caller's goroutine and may
// call the store.
func (s *Store) Watch(ctx context.Context, prefix string, after uint64, fn func(lease.Event) error) error {
	if err := lease.CheckPrefix(prefix); err != nil {
		return err
	}
	known := after != 0
	for {
		events, index, changed, err := s.changes(ctx, prefix, after, known)
		if err != nil {
			return fmt.Errorf("watch leases: %w", err)
		}
		for _, e := range events {
			if e.Kind != lease.EventSynced && !strings.HasPrefix(e.Record.Name, prefix) {
				continue
			}
			if ctx.Err() != nil {
				return fmt.Errorf("watch leases: %w", ended(ctx))
			}
			e.Record = outside(e.Record)
			if err := fn(e); err != nil {
				return err
			}
		}
		after, known = index, true
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("watch leases: %w", ended(ctx))
		case <-s.done:
			return fmt.Errorf("watch leases: %w", lease.ErrClosed)
		}
	}
}

// changes returns what a watcher that has seen everything up to after has to
// see next, the index it then has seen, and a channel that is closed when there
// is more. Without a known position it is the present state.
func (s *Store) changes(ctx context.Context, prefix string, after uint64, known bool) (
	events []lease.Event, index uint64, changed <-chan struct{}, err error,
) {
	now, err := s.begin(ctx)
	if err != nil {
		return nil, 0, nil, err
	}
	defer s.finish(now)
	h := &s.past
	past, ok := h.since(after)
	if known && ok {
		return slices.Clone(past), h.index, h.changed, nil
	}
	for _, r := range s.list(prefix, now) {
		events = append(events, lease.Event{Index: h.index, Kind: lease.EventState, Record: r})
	}
	events = append(events, lease.Event{Index: h.index, Kind: lease.EventSynced})
	return events, h.index, h.changed, nil
}

var (
	_ lease.Store     = (*Store)(nil)
	_ lease.Waiter    = (*Store)(nil)
	_ lease.Inspector = (*Store)(nil)
	_ lease.DataStore = (*Store)(nil)
	_ lease.Watcher   = (*Store)(nil)
)
