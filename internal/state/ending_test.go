package state_test

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/raftlease/raftlease/internal/state"
)

func TestMachine_ACommandCountsOnlyInTheTermThatDecidedIt(t *testing.T) { // rule 13, case 1
	s := state.Session{Node: "n1", Disk: "d1", Incarnation: 1}
	for _, c := range []struct {
		name        string
		decided, at uint64
		void        bool
	}{
		{"in the same term it counts", 7, 7, false},
		{"of an earlier term it is void", 6, 7, true},
		{"of a later term it is void", 8, 7, true},
	} {
		for _, cmd := range []func(state.Lease) state.Command{
			func(l state.Lease) state.Command { return expire(l) },
			func(l state.Lease) state.Command { return shorten(l, time.Second) },
			func(l state.Lease) state.Command { return renew(l, time.Minute) },
			func(l state.Lease) state.Command { return acquireIn(l.Name, l.Owner, s) },
			func(l state.Lease) state.Command { return acquire("another", "b", time.Minute) },
			func(l state.Lease) state.Command { return put(l, "data") },
			func(l state.Lease) state.Command { return breakLease(l.Name) },
			func(l state.Lease) state.Command { return release(l) },
			func(state.Lease) state.Command { return reclaim(state.Session{Node: "n1", Disk: "d1", Incarnation: 2}) },
		} {
			m := state.New("c1")
			l := do(t, m, acquireIn("job", "a", s)).Lease
			t.Run(fmt.Sprintf("%s: kind %d", c.name, cmd(l).Kind), func(t *testing.T) {
				before := m.List("")
				e := state.Entry{Term: c.decided, Commands: []state.Command{cmd(l)}}
				r := m.ApplyEntry(m.Index()+1, c.at, e)[0]
				if changed := !reflect.DeepEqual(m.List(""), before); changed == c.void {
					t.Errorf("state changed: got %v, want %v", changed, !c.void)
				}
				if c.void {
					same(t, "result", r, state.Result{Code: state.Stale})
				} else if r.Code != state.OK {
					t.Errorf("got %+v, want OK", r)
				}
			})
		}
	}
}

func TestExpire_NeverEndsWhatWasRefreshedSince(t *testing.T) { // rule 10, G3
	for _, c := range []struct {
		name    string
		refresh func(state.Lease) state.Command
	}{
		{"by a longer renew", func(l state.Lease) state.Command { return renew(l, time.Minute) }},
		{"by a shorter renew", func(l state.Lease) state.Command { return renew(l, time.Second) }},
		{"by an acquire of its owner", func(l state.Lease) state.Command { return acquire(l.Name, l.Owner, time.Second) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := state.New("c1")
			l := grant(t, m, "job", "a")
			refreshed := do(t, m, c.refresh(l)).Lease
			same(t, "result", do(t, m, expire(l)), state.Result{Code: state.OK})
			holds(t, m, refreshed)
			same(t, "with the new revision", do(t, m, expire(refreshed)).Ended, []state.Lease{refreshed})
		})
	}
}

func TestExpire_NeverEndsAnotherGrant(t *testing.T) { // rule 9, case 2
	m := state.New("c1")
	old := grant(t, m, "job", "a")
	do(t, m, release(old))
	// Within one entry old and new grant have the same revision: the token
	// alone tells them apart.
	rs := apply(t, m, acquire("job", "a", time.Second), breakLease("job"), acquire("job", "b", time.Second))
	first, second := rs[0].Lease, rs[2].Lease
	same(t, "revision", second.Revision, first.Revision)
	same(t, "expiry of the grants before", do(t, m, expire(old, first)), state.Result{Code: state.OK})
	holds(t, m, second)
}

func TestExpire_DataDoesNotProtectAGrant(t *testing.T) {
	m := state.New("c1")
	l := grant(t, m, "job", "a")
	do(t, m, put(l, "x"))
	same(t, "ended", len(do(t, m, expire(l)).Ended), 1)
}

func TestExpire_EndsEachOnItsOwnInOrderOfName(t *testing.T) {
	m := state.New("c1")
	a, b, c := grant(t, m, "a", "x"), grant(t, m, "b", "x"), grant(t, m, "c", "x")
	stale := b
	stale.Revision++
	unknown := state.Lease{Name: "nobody", Token: 1, Revision: 1}
	r := do(t, m, expire(c, stale, unknown, a, a, state.Lease{Name: "\xff"}))
	same(t, "result", r, state.Result{Code: state.OK, Ended: []state.Lease{a, c}})
	holds(t, m, b)
	same(t, "live grants", m.Live(), 1)
	// A free record is no grant, whatever the numbers say.
	do(t, m, put(b, "x"))
	do(t, m, release(b))
	free, _ := m.Get("b")
	same(t, "of a free record", do(t, m, expire(free)), state.Result{Code: state.OK})
	holds(t, m, free)
}

func TestExpire_WaiterInTheSameEntryIsGranted(t *testing.T) {
	m := state.New("c1")
	l := grant(t, m, "job", "a")
	rs := apply(t, m, expire(l), acquire("job", "b", time.Second))
	if !rs[1].New || rs[1].Lease.Token <= l.Token {
		t.Fatalf("acquire behind the expiry: got %+v, want a new grant", rs[1])
	}
}

func TestBreak_FreesWhoeverHolds(t *testing.T) {
	m := state.New("c1")
	l := grant(t, m, "job", "a")
	same(t, "result", do(t, m, breakLease("job")), state.Result{Code: state.OK, Lease: l, Ended: []state.Lease{l}})
	gone(t, m, "job")
	same(t, "again", do(t, m, breakLease("job")), state.Result{Code: state.NotLive})
	same(t, "live grants", m.Live(), 0)
}

func TestReclaim_FreesOnlyEarlierIncarnationsOfTheSameDisk(t *testing.T) { // G3
	m := state.New("c1")
	held := map[string]state.Session{
		"z older":      {Node: "n1", Disk: "d1", Incarnation: 1},
		"a old":        {Node: "n1", Disk: "d1", Incarnation: 4},
		"same":         {Node: "n1", Disk: "d1", Incarnation: 5},
		"later":        {Node: "n1", Disk: "d1", Incarnation: 6},
		"other disk":   {Node: "n1", Disk: "d2", Incarnation: 1},
		"other node":   {Node: "n2", Disk: "d1", Incarnation: 1},
		"no session":   {},
		"several have": {Node: "n1", Disk: "d1", Incarnation: 1},
	}
	for name, s := range held {
		same(t, name, do(t, m, acquireIn(name, "o", s)).Code, state.OK)
	}
	do(t, m, acquire("several have", "o", time.Second))
	older, _ := m.Get("z older")
	old, _ := m.Get("a old")
	r := do(t, m, reclaim(state.Session{Node: "n1", Disk: "d1", Incarnation: 5}))
	same(t, "result", r, state.Result{Code: state.OK, Ended: []state.Lease{old, older}})
	same(t, "live grants", m.Live(), len(held)-2)
	same(t, "again", do(t, m, reclaim(state.Session{Node: "n1", Disk: "d1", Incarnation: 5})), state.Result{Code: state.OK})
}

// A grant that was promised to more than one process must outlive each of them.
func TestAcquire_SessionIsThatOfTheOnlyProcess(t *testing.T) { // G3
	none := state.Session{}
	s := func(node, disk string, i uint64) state.Session {
		return state.Session{Node: node, Disk: disk, Incarnation: i}
	}
	for _, c := range []struct {
		name           string
		first, then, w state.Session
	}{
		{"the same stays", s("n1", "d1", 2), s("n1", "d1", 2), s("n1", "d1", 2)},
		{"none stays none", none, none, none},
		{"a later incarnation replaces a dead one", s("n1", "d1", 2), s("n1", "d1", 3), s("n1", "d1", 3)},
		{"a late command of a dead incarnation changes nothing", s("n1", "d1", 3), s("n1", "d1", 2), s("n1", "d1", 3)},
		{"a process without session may believe in it too", s("n1", "d1", 2), none, none},
		{"a process without session believed in it first", none, s("n1", "d1", 2), none},
		{"another node", s("n1", "d1", 2), s("n2", "d1", 2), none},
		{"another disk", s("n1", "d1", 2), s("n1", "d2", 2), none},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := state.New("c1")
			do(t, m, acquireIn("job", "a", c.first))
			same(t, "session", do(t, m, acquireIn("job", "a", c.then)).Lease.Session, c.w)
		})
	}
}

func TestAcquire_SessionOfANewGrantIsItsOwn(t *testing.T) {
	m := state.New("c1")
	old := state.Session{Node: "n1", Disk: "d1", Incarnation: 1}
	l := do(t, m, acquireIn("job", "a", old)).Lease
	do(t, m, put(l, "x")) // so that the record stays
	do(t, m, release(l))
	free, _ := m.Get("job")
	same(t, "session of a free record", free.Session, state.Session{})
	again := state.Session{Node: "n2", Disk: "d2", Incarnation: 9}
	same(t, "session", do(t, m, acquireIn("job", "a", again)).Lease.Session, again)
}
