package leasetest

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/raftlease/raftlease/lease"
)

// watch is a Watch under way and what it has reported so far.
type watch struct {
	cancel context.CancelCauseFunc
	done   chan struct{}
	err    error // set before done is closed
	opens  int   // how often it has to report the state

	mu     sync.Mutex
	events []lease.Event
}

// watch starts a Watch. The case ends only when it has returned.
func (e *env) watch(s lease.Store, prefix string, after uint64) *watch {
	e.Helper()
	ctx, cancel := context.WithCancelCause(context.Background())
	w := &watch{cancel: cancel, done: make(chan struct{})}
	if after == 0 {
		w.opens = 1
	}
	go func() {
		defer close(w.done)
		w.err = s.(lease.Watcher).Watch(ctx, prefix, after, func(v lease.Event) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.events = append(w.events, v)
			return nil
		})
	}()
	e.Cleanup(func() { w.stop() })
	return w
}

// open starts a Watch and waits until it has reported the state.
func (e *env) open(s lease.Store, prefix string) *watch {
	e.Helper()
	w := e.watch(s, prefix, 0)
	w.until(e, "synced", synced)
	return w
}

func (w *watch) stop() error {
	w.cancel(errStopped)
	<-w.done
	return w.err
}

// seen returns the events so far.
func (w *watch) seen() []lease.Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.events)
}

// until waits for an event and returns all up to it; ok is false when the watch
// fell behind before that and reported the state instead.
func (w *watch) until(e *env, what string, is func(v lease.Event) bool) (upTo []lease.Event, ok bool) {
	e.Helper()
	behind, found := false, false
	defer func() {
		if !found && !behind {
			for _, v := range w.seen() {
				e.Logf("seen: %s", line(v))
			}
		}
	}()
	e.poll("event "+what, func() bool {
		opens := 0
		all := w.seen()
		for i, v := range all {
			if is(v) {
				upTo, found = all[:i+1], true
				return true
			}
			if synced(v) {
				opens++
			}
			if behind = opens > w.opens; behind {
				return true
			}
		}
		select {
		case <-w.done:
			e.Fatalf("event %s: the watch ended: %v", what, w.err)
		default:
		}
		return false
	})
	return upTo, found
}

// inStep repeats a case about events, with a number to tell the repetitions
// apart, for as long as a watch in it falls behind: a store remembers only so
// many changes, and the other cases make many at first.
func (e *env) inStep(try func(n int) (ok bool)) {
	e.Helper()
	e.inTime("a watch that does not fall behind", try)
}

// line shows what matters of an event.
func line(v lease.Event) string {
	r := v.Record
	return fmt.Sprintf("%d %s %q owner %q token %d data %q of %d", v.Index, v.Kind, r.Name, r.Owner, r.Token, shown(string(r.Data)), r.DataToken)
}

// is returns a condition for until.
func is(kind lease.EventKind, name string) func(lease.Event) bool {
	return func(v lease.Event) bool { return v.Kind == kind && v.Record.Name == name }
}

func synced(v lease.Event) bool { return v.Kind == lease.EventSynced }
