package raftlease

import (
	"fmt"
	"testing"

	"github.com/raftlease/raftlease/internal/state"
	"github.com/raftlease/raftlease/lease"
)

// granted records one grant at an index.
func granted(l *eventLog, index uint64, data int) {
	l.record(index, []state.Command{{Kind: state.KindAcquire}}, []state.Result{{
		Code: state.OK, New: true, Lease: state.Lease{Name: fmt.Sprint(index), Owner: "x", Token: index, Data: make([]byte, data)},
	}})
}

func TestEventLog_ForgetsTheOldestAndSaysSo(t *testing.T) {
	for _, c := range []struct {
		name string
		data int
		keep int
	}{
		{"by their number", 0, keepEvents},
		{"by their data", 64 << 10, keepData / (64 << 10)},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newEventLog()
			last := uint64(c.keep + 10)
			for i := uint64(1); i <= last; i++ {
				granted(l, i, c.data)
			}
			first := last - uint64(c.keep) + 1
			events, ok, _ := l.since(first - 1)
			if !ok || len(events) != c.keep || events[0].Index != first || events[len(events)-1].Index != last {
				t.Errorf("after %d: %d events, complete: %v", first-1, len(events), ok)
			}
			if _, ok, _ := l.since(first - 2); ok {
				t.Errorf("events after %d are said to be complete", first-2)
			}
			if events, ok, _ := l.since(last); !ok || len(events) != 0 {
				t.Errorf("after the last: %d events, complete: %v", len(events), ok)
			}
		})
	}
}

// Events of one index are kept or forgotten together.
func TestEventLog_KeepsWholeEntries(t *testing.T) {
	l := newEventLog()
	cmds, results := make([]state.Command, keepEvents-1), make([]state.Result, keepEvents-1)
	for i := range cmds {
		cmds[i] = state.Command{Kind: state.KindAcquire}
		results[i] = state.Result{Code: state.OK, New: true, Lease: state.Lease{Name: "a", Owner: "x", Token: 1}}
	}
	l.record(1, cmds, results)
	granted(l, 2, 0)
	granted(l, 3, 0)
	if events, ok, _ := l.since(1); !ok || len(events) != 2 {
		t.Errorf("after 1: %d events, complete: %v", len(events), ok)
	}
	if _, ok, _ := l.since(0); ok {
		t.Error("half of the first entry is said to be complete")
	}
}

func TestEventLog_WakesWatchers(t *testing.T) {
	l := newEventLog()
	_, _, changed := l.since(0)
	l.record(1, []state.Command{{Kind: state.KindEpoch}}, []state.Result{{Code: state.OK}})
	select {
	case <-changed:
		t.Error("woken by nothing")
	default:
	}
	granted(l, 2, 0)
	<-changed
	_, _, changed = l.since(2)
	l.reset(9)
	<-changed
	if _, ok, _ := l.since(2); ok {
		t.Error("events before a restored snapshot are said to be complete")
	}
	if events, ok, _ := l.since(9); !ok || len(events) != 0 {
		t.Errorf("after the snapshot: %d events, complete: %v", len(events), ok)
	}
}

func TestEventLog_RemembersReasonsWithinBounds(t *testing.T) {
	l := newEventLog()
	for i := uint64(1); i <= keepEnds+5; i++ {
		l.record(i, []state.Command{{Kind: state.KindBreak}}, []state.Result{{
			Code: state.OK, Ended: []state.Lease{{Name: "a", Owner: "x", Token: i}},
		}})
	}
	if _, ok := l.ended(5); ok || len(l.ends) != keepEnds || len(l.order) != keepEnds {
		t.Errorf("token 5 is known: %v; %d reasons, want %d", ok, len(l.ends), keepEnds)
	}
	if why, ok := l.ended(6); !ok || why != lease.ReasonBroken {
		t.Errorf("token 6 ended as %q, %v", why, ok)
	}
}
