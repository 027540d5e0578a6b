package leasetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/raftlease/raftlease/lease"
)

var watchCases = []one{
	{"a watch opens with the state and then reports changes in order", watcher, watchStory},
	{"an ending is reported once it cannot be undone", watcher, endingIsFinal},
	{"a watch resumes by index without loss or repetition", watcher, watchResumes},
	{"a watch reports its prefix alone", watcher, watchPrefix},
	{"a watch ends with its context or with the error of its function", watcher, watchEnds},
	{"G6 a watcher that does not come back stops nobody", watcher, slowWatcher},
}

// watch is a Watch under way and what it has reported so far.
type watch struct {
	cancel context.CancelCauseFunc
	done   chan struct{}
	err    error // set before done is closed

	mu     sync.Mutex
	events []lease.Event
}

// watch starts a Watch. The case ends only when it has returned.
func (e *env) watch(s lease.Store, prefix string, after uint64) *watch {
	e.Helper()
	ctx, cancel := context.WithCancelCause(context.Background())
	w := &watch{cancel: cancel, done: make(chan struct{})}
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

// until waits for an event and returns all up to it.
func (w *watch) until(e *env, what string, is func(v lease.Event) bool) []lease.Event {
	e.Helper()
	var upTo []lease.Event
	defer func() {
		if upTo == nil {
			for _, v := range w.seen() {
				e.Logf("seen: %s", line(v))
			}
		}
	}()
	e.poll("event "+what, func() bool {
		all := w.seen()
		if i := slices.IndexFunc(all, is); i >= 0 {
			upTo = all[:i+1]
		}
		select {
		case <-w.done:
			if upTo == nil {
				e.Fatalf("event %s: the watch ended: %v", what, w.err)
			}
		default:
		}
		return upTo != nil
	})
	return upTo
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

// expects checks what events say, but for their index. Extensions may be
// reported or not.
func (e *env) expects(events []lease.Event, want ...string) {
	e.Helper()
	var got []string
	for _, v := range events {
		r := v.Record
		switch v.Kind {
		case lease.EventExtended:
		case lease.EventSynced:
			got = append(got, string(v.Kind))
		default:
			got = append(got, told(v.Kind, lease.Grant{Name: r.Name, Owner: r.Owner, Token: r.Token}, string(r.Data)))
		}
	}
	if !slices.Equal(got, want) {
		e.Errorf("events\n%q\nwant\n%q", got, want)
	}
}

func told(kind lease.EventKind, g lease.Grant, data string) string {
	return fmt.Sprintf("%s %s owner %s token %d data %s", kind, g.Name, g.Owner, g.Token, data)
}

// rises checks the indexes: those of calls made one after the other rise.
func (e *env) rises(events []lease.Event) {
	e.Helper()
	for i := 1; i < len(events); i++ {
		before, v := events[i-1], events[i]
		opening := v.Kind == lease.EventState || v.Kind == lease.EventSynced
		if v.Index < before.Index || v.Index == before.Index && !opening {
			e.Errorf("event %q after %q, want a larger index", line(v), line(before))
		}
	}
}

// story makes one change of every kind under a name and returns what a watcher
// is told of them.
func (e *env) story(name string) []string {
	e.Helper()
	var want []string
	a := e.acquire(e.store(0), name, "a", e.long)
	e.renew(e.store(0), a.Grant, 2*e.long)
	e.release(e.store(0), a.Grant)
	want = append(want, told(lease.EventGranted, a.Grant, ""), told(lease.EventReleased, a.Grant, ""))

	b := e.acquire(e.store(1), name, "b", e.short)
	want = append(want, told(lease.EventGranted, b.Grant, ""))
	data := ""
	if _, ok := e.store(0).(lease.DataStore); ok {
		// The grant is short, and the test may be slower.
		if err := e.tryPut(e.store(1), b.Grant, []byte("x")); err == nil {
			data = "x"
			want = append(want, told(lease.EventData, b.Grant, data))
		} else if !errors.Is(err, lease.ErrLost) {
			e.Fatalf("put: %v", err)
		}
	}
	return append(want, told(lease.EventExpired, b.Grant, data))
}

func watchStory(e *env) {
	older := e.acquire(e.store(0), e.name("older"), "o", e.long)
	oldest := e.acquire(e.store(0), e.name("Oldest"), "o", e.long)
	var watches []*watch
	for _, s := range e.stores {
		w := e.watch(s, e.prefix, 0)
		w.until(e, "synced", synced)
		watches = append(watches, w)
	}
	name := e.name("watched")
	want := append([]string{
		told(lease.EventState, oldest.Grant, ""), told(lease.EventState, older.Grant, ""), "synced",
	}, e.story(name)...)
	for _, w := range watches {
		events := w.until(e, "expired", is(lease.EventExpired, name))
		e.expects(events, want...)
		e.rises(events)
		for _, v := range events {
			if v.Kind == lease.EventGranted && v.Record.Owner == "a" && v.Record.TTL != e.long {
				e.Errorf("%s: ttl %v, want %v", line(v), v.Record.TTL, e.long)
			}
		}
	}
}

func endingIsFinal(e *env) {
	for i, s := range e.stores {
		w := e.watch(s, e.prefix, 0)
		w.until(e, "synced", synced)
		g := e.acquire(e.store(i), e.name(fmt.Sprint("ends ", i)), "a", e.short)
		ending := w.until(e, "expired", is(lease.EventExpired, g.Name))
		if last := ending[len(ending)-1].Record; last.Owner != g.Owner || last.Token != g.Token {
			e.Errorf("expired: owner %q, token %d, want %q, %d", last.Owner, last.Token, g.Owner, g.Token)
		}
		if g.Check() == nil {
			e.Errorf("the expiry of %q is reported while its holder believes in it (G4)", g.Name)
		}
		e.notRenewed(e.store(i+1), g.Grant, nil)
		e.larger(e.acquire(e.store(i+1), g.Name, "b", e.long).Grant, g.Grant)
	}
}

// watchResumes resumes at every index of a story. Where the store is busy and
// remembers few changes it may report the state instead; that is no fault.
func watchResumes(e *env) {
	for try := range 5 {
		prefix := e.name(fmt.Sprint("resumed ", try, "/"))
		whole := e.watch(e.store(0), prefix, 0)
		whole.until(e, "synced", synced)
		for _, s := range []string{"x", "y"} {
			for _, owner := range []string{"a", "b"} {
				g := e.acquire(e.store(0), prefix+s, owner, e.long)
				e.renew(e.store(0), g.Grant, 2*e.long)
				e.release(e.store(0), g.Grant)
			}
		}
		middle := whole.until(e, "the last release", func(v lease.Event) bool {
			return v.Kind == lease.EventReleased && v.Record.Name == prefix+"y" && v.Record.Owner == "b"
		})
		from, fallen := 0, false
		for i, v := range middle {
			if v.Kind == lease.EventSynced {
				from = i + 1
			}
		}
		var resumed []*watch
		var after []uint64
		for i := from; i < len(middle); i++ {
			if i+1 < len(middle) && middle[i+1].Index == middle[i].Index {
				continue
			}
			resumed = append(resumed, e.watch(e.store(len(resumed)), prefix, middle[i].Index))
			after = append(after, middle[i].Index)
		}
		e.acquire(e.store(0), prefix+"marker", "m", e.long)
		marker := is(lease.EventGranted, prefix+"marker")
		all := whole.until(e, "the marker", marker)
		for i, w := range resumed {
			events := w.until(e, "the marker or the state", func(v lease.Event) bool { return marker(v) || synced(v) })
			if fallen = fallen || synced(events[len(events)-1]); fallen {
				break
			}
			var want []string
			for _, v := range all[from:] {
				if v.Index > after[i] {
					want = append(want, line(v))
				}
			}
			var got []string
			for _, v := range events {
				got = append(got, line(v))
			}
			if !slices.Equal(got, want) {
				e.Errorf("resumed after %d:\n%q\nwant\n%q", after[i], got, want)
			}
		}
		if !fallen {
			return
		}
		e.Logf("the store no longer had the changes; again")
	}
	e.Skip("the store never had the changes after an index it had just reported")
}

func watchPrefix(e *env) {
	inside := e.watch(e.store(0), e.name("in"), 0)
	exact := e.watch(e.store(0), e.name("in/1"), 0)
	literal := e.watch(e.store(0), e.name("%"), 0)
	for _, w := range []*watch{inside, exact, literal} {
		w.until(e, "synced", synced)
	}
	var in, one, percent []string
	for _, s := range []string{"in", "In", "out", "in/1", "i", "in/2", "%", "in/1/2", "in"} {
		g := e.acquire(e.store(0), e.name(s), "a", e.long)
		e.release(e.store(0), g.Grant)
		story := []string{told(lease.EventGranted, g.Grant, ""), told(lease.EventReleased, g.Grant, "")}
		switch s {
		case "in", "in/2":
			in = append(in, story...)
		case "in/1", "in/1/2":
			in = append(in, story...)
			one = append(one, story...)
		case "%":
			percent = append(percent, story...)
		}
	}
	for _, c := range []struct {
		w      *watch
		prefix string
		want   []string
	}{{inside, "in", in}, {exact, "in/1", one}, {literal, "%", percent}} {
		last := e.acquire(e.store(0), e.name(c.prefix+"/end"), "a", e.long)
		events := c.w.until(e, "the end", is(lease.EventGranted, last.Name))
		e.expects(events, slices.Concat([]string{"synced"}, c.want, []string{told(lease.EventGranted, last.Grant, "")})...)
	}
}

func watchEnds(e *env) {
	w := e.watch(e.store(0), e.prefix, 0)
	w.until(e, "synced", synced)
	e.stopped("watch", w.stop())

	enough := errors.New("seen enough")
	calls := 0
	err := e.store(0).(lease.Watcher).Watch(context.Background(), e.prefix, 0, func(lease.Event) error {
		calls++
		return enough
	})
	if err != enough || calls != 1 {
		e.Errorf("watch returned %v after %d calls of its function, want its own error after 1", err, calls)
	}
}

func slowWatcher(e *env) {
	s := e.store(0).(lease.Watcher)
	ctx, cancel := context.WithCancelCause(context.Background())
	stuck, goOn, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	var once sync.Once
	go func() {
		defer close(done)
		_ = s.Watch(ctx, e.prefix, 0, func(lease.Event) error {
			once.Do(func() { close(stuck) })
			<-goOn
			return nil
		})
	}()
	defer func() {
		close(goOn)
		cancel(errStopped)
		<-done
	}()
	<-stuck
	other := e.watch(e.store(0), e.prefix, 0)
	for i := range 300 { // more than a store would queue for one watcher without a thought
		g := e.acquire(e.store(0), e.name(fmt.Sprint("goes on ", i%3)), fmt.Sprint("owner ", i), e.long)
		e.release(e.store(0), g.Grant)
	}
	last := e.acquire(e.store(0), e.name("last"), "a", e.long)
	other.until(e, "the last", func(v lease.Event) bool { return v.Record.Name == last.Name })
}
