package leasetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
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

// expects checks what events say, but for their index. Extensions may be
// reported or not, and a repeated put may be reported again.
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
			text := told(v.Kind, lease.Grant{Name: r.Name, Owner: r.Owner, Token: r.Token}, string(r.Data))
			if v.Kind != lease.EventData || len(got) == 0 || got[len(got)-1] != text {
				got = append(got, text)
			}
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
// is told of them; ok is false when the test was too slow to put its data.
func (e *env) story(name string) (want []string, ok bool) {
	e.Helper()
	a := e.acquire(e.store(0), name, "a", e.long)
	e.renew(e.store(0), a.Grant, 2*e.long)
	e.release(e.store(0), a.Grant)
	b := e.acquire(e.store(1), name, "b", e.short)
	want = []string{
		told(lease.EventGranted, a.Grant, ""), told(lease.EventReleased, a.Grant, ""), told(lease.EventGranted, b.Grant, ""),
	}
	if _, puts := e.store(1).(lease.DataStore); !puts {
		return append(want, told(lease.EventExpired, b.Grant, "")), true
	}
	if err := e.tryPut(e.store(1), b.Grant, []byte("x")); err != nil {
		e.tooSlow(b, "the put was refused: "+err.Error())
		return nil, false
	}
	return append(want, told(lease.EventData, b.Grant, "x"), told(lease.EventExpired, b.Grant, "x")), true
}

func watchStory(e *env) {
	e.inStep(func(n int) bool {
		prefix := e.name(fmt.Sprint("story ", n, "/"))
		older := e.acquire(e.store(0), prefix+"older", "o", e.long)
		oldest := e.acquire(e.store(0), prefix+"Oldest", "o", e.long)
		var watches []*watch
		for _, s := range e.stores {
			watches = append(watches, e.open(s, prefix))
		}
		name := prefix + "watched"
		story, ok := e.story(name)
		if !ok {
			return false
		}
		want := append([]string{
			told(lease.EventState, oldest.Grant, ""), told(lease.EventState, older.Grant, ""), "synced",
		}, story...)
		for _, w := range watches {
			events, ok := w.until(e, "expired", is(lease.EventExpired, name))
			if !ok {
				return false
			}
			e.expects(events, want...)
			e.rises(events)
			for _, v := range events {
				if v.Kind == lease.EventGranted && v.Record.Owner == "a" && v.Record.TTL != e.long {
					e.Errorf("%s: ttl %v, want %v", line(v), v.Record.TTL, e.long)
				}
			}
		}
		return true
	})
}

func endingIsFinal(e *env) {
	e.inStep(func(n int) bool {
		for i, s := range e.stores {
			name := e.name(fmt.Sprint("ends ", n, i))
			w := e.open(s, name)
			g := e.acquire(e.store(i), name, "a", e.short)
			ending, ok := w.until(e, "expired", is(lease.EventExpired, g.Name))
			if !ok {
				return false
			}
			if last := ending[len(ending)-1].Record; last.Owner != g.Owner || last.Token != g.Token {
				e.Errorf("expired: owner %q, token %d, want %q, %d", last.Owner, last.Token, g.Owner, g.Token)
			}
			if g.Check() == nil {
				e.Errorf("the expiry of %q is reported while its holder believes in it (G4)", g.Name)
			}
			e.notRenewed(e.store(i+1), g.Grant, nil)
			e.larger(e.acquire(e.store(i+1), g.Name, "b", e.long).Grant, g.Grant)
		}
		return true
	})
}

// watchResumes resumes at every index of a story.
func watchResumes(e *env) {
	e.inStep(func(n int) bool {
		prefix := e.name(fmt.Sprint("resumed ", n, "/"))
		whole := e.open(e.store(0), prefix)
		var last held
		for _, s := range []string{"x", "y"} {
			for _, owner := range []string{"a", "b"} {
				last = e.acquire(e.store(0), prefix+s, owner, e.long)
				e.renew(e.store(0), last.Grant, 2*e.long)
				e.release(e.store(0), last.Grant)
			}
		}
		middle, ok := whole.until(e, "the last release", func(v lease.Event) bool {
			return v.Kind == lease.EventReleased && v.Record.Token == last.Token
		})
		if !ok {
			return false
		}
		changes := middle[slices.IndexFunc(middle, synced)+1:]
		resumed := map[uint64]*watch{} // by index; several events may share one
		for i, v := range changes {
			if resumed[v.Index] == nil {
				resumed[v.Index] = e.watch(e.store(i), prefix, v.Index)
			}
		}
		e.acquire(e.store(0), prefix+"marker", "m", e.long)
		marker := is(lease.EventGranted, prefix+"marker")
		all, ok := whole.until(e, "the marker", marker)
		for after, w := range resumed {
			events, inStep := w.until(e, "the marker", marker)
			if ok = ok && inStep; !ok {
				return false
			}
			e.same(after, events, slices.DeleteFunc(slices.Clone(all), func(v lease.Event) bool {
				return v.Index <= after || synced(v)
			}))
		}
		return ok
	})
}

// same compares what a watch that resumed reported with what another did.
func (e *env) same(after uint64, events, want []lease.Event) {
	e.Helper()
	var got, expected []string
	for _, v := range events {
		got = append(got, line(v))
	}
	for _, v := range want {
		expected = append(expected, line(v))
	}
	if !slices.Equal(got, expected) {
		e.Errorf("resumed after %d:\n%q\nwant\n%q", after, got, expected)
	}
}

func watchPrefix(e *env) {
	e.inStep(func(n int) bool {
		top := e.name(fmt.Sprint("prefix ", n, "/"))
		prefixes := []string{"in", "in/1", "%"}
		watches := map[string]*watch{}
		for _, p := range prefixes {
			watches[p] = e.open(e.store(0), top+p)
		}
		want := map[string][]string{}
		for _, s := range []string{"in", "In", "out", "in/1", "i", "in/2", "%", "in/1/2", "in"} {
			g := e.acquire(e.store(0), top+s, "a", e.long)
			e.release(e.store(0), g.Grant)
			for _, p := range prefixes {
				if strings.HasPrefix(s, p) {
					want[p] = append(want[p], told(lease.EventGranted, g.Grant, ""), told(lease.EventReleased, g.Grant, ""))
				}
			}
		}
		for _, p := range slices.Backward(prefixes) { // the longer one first
			last := e.acquire(e.store(0), top+p+"/end", "a", e.long)
			events, ok := watches[p].until(e, "the end", is(lease.EventGranted, last.Name))
			if !ok {
				return false
			}
			e.expects(events, slices.Concat([]string{"synced"}, want[p], []string{told(lease.EventGranted, last.Grant, "")})...)
			if p == "in/1" {
				want["in"] = append(want["in"], told(lease.EventGranted, last.Grant, ""))
			}
		}
		return true
	})
}

func watchEnds(e *env) {
	e.stopped("watch", e.open(e.store(0), e.prefix).stop())

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
	for i := range 300 { // more than a store would queue for one watcher without a thought
		g := e.acquire(e.store(0), e.name(fmt.Sprint("goes on ", i%3)), fmt.Sprint("owner ", i), e.long)
		e.release(e.store(0), g.Grant)
	}
	last := e.acquire(e.store(0), e.name("last"), "a", e.long)
	other := e.watch(e.store(0), e.prefix, 0)
	other.until(e, "the last", is(lease.EventState, last.Name))
}
