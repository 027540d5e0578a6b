package raftlease

import (
	"sync"

	"github.com/raftlease/raftlease/internal/granter"
	"github.com/raftlease/raftlease/internal/state"
	"github.com/raftlease/raftlease/internal/wire"
	"github.com/raftlease/raftlease/lease"
)

// Bounds of what a node keeps for watchers and for explaining losses.
const (
	keepEvents = 4096
	keepData   = 8 << 20 // bytes of data in the kept events
	keepEnds   = 8192
)

// eventLog is the last changes of the state, as a node applied them, and why the
// last grants ended. Both are for people and watchers: no decision rests on them,
// and they are not replicated. Safe for concurrent use.
type eventLog struct {
	mu      sync.Mutex
	events  []lease.Event
	data    int    // bytes of data in events
	floor   uint64 // all changes after this index are in events
	changed chan struct{}

	ends  map[uint64]lease.Reason // by token
	order []uint64                // tokens in ends, the oldest first
}

func newEventLog() *eventLog {
	return &eventLog{changed: make(chan struct{}), ends: map[uint64]lease.Reason{}}
}

// record adds what one entry did.
func (l *eventLog) record(index uint64, cmds []state.Command, results []state.Result) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := len(l.events)
	for i, c := range cmds {
		r := results[i]
		switch {
		case r.Code != state.OK:
		case c.Kind == state.KindAcquire && r.New:
			l.add(index, lease.EventGranted, r.Lease)
		case c.Kind == state.KindAcquire, c.Kind == state.KindRenew:
			l.add(index, lease.EventExtended, r.Lease)
		case c.Kind == state.KindPut:
			l.add(index, lease.EventData, r.Lease)
		}
		for _, ended := range r.Ended {
			kind, reason := ending(c.Kind)
			l.add(index, kind, ended)
			l.end(ended.Token, reason)
		}
	}
	if len(l.events) == before {
		return
	}
	l.trim()
	close(l.changed)
	l.changed = make(chan struct{})
}

func ending(k state.Kind) (lease.EventKind, lease.Reason) {
	switch k {
	case state.KindExpire:
		return lease.EventExpired, lease.ReasonExpired
	case state.KindBreak:
		return lease.EventBroken, lease.ReasonBroken
	}
	return lease.EventReleased, lease.ReasonReleased
}

func (l *eventLog) add(index uint64, kind lease.EventKind, of state.Lease) {
	l.events = append(l.events, lease.Event{Index: index, Kind: kind, Record: wire.Record(granter.Record(of))})
	l.data += len(of.Data)
}

func (l *eventLog) end(token uint64, why lease.Reason) {
	l.ends[token] = why
	l.order = append(l.order, token)
	if len(l.order) > keepEnds {
		delete(l.ends, l.order[0])
		l.order = l.order[1:]
	}
}

// trim forgets the oldest events, whole entries at a time, so that floor is
// true.
func (l *eventLog) trim() {
	n := 0
	for n < len(l.events) && (len(l.events)-n > keepEvents || l.data > keepData) {
		l.floor = l.events[n].Index
		for n < len(l.events) && l.events[n].Index == l.floor {
			l.data -= len(l.events[n].Record.Data)
			n++
		}
	}
	clear(l.events[:n])
	l.events = l.events[n:]
}

// reset forgets everything: the state was replaced by a snapshot of that index.
func (l *eventLog) reset(index uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events, l.data, l.floor = nil, 0, index
	close(l.changed)
	l.changed = make(chan struct{})
}

// since returns the events after an index; ok is false when some are gone.
// changed is closed at the next change.
func (l *eventLog) since(after uint64) (events []lease.Event, ok bool, changed <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if after < l.floor {
		return nil, false, l.changed
	}
	i := len(l.events)
	for i > 0 && l.events[i-1].Index > after {
		i--
	}
	return append(events, l.events[i:]...), true, l.changed
}

// ended tells why the grant with this token ended, if it is still known.
func (l *eventLog) ended(token uint64) (lease.Reason, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	why, ok := l.ends[token]
	return why, ok
}
