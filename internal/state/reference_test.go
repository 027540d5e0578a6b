package state_test

import (
	"reflect"
	"sort"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/raftlease/raftlease/internal/state"
)

// reference is the state written down a second time, as plainly as it can be,
// for commands within the limits.
type reference struct {
	last   uint64 // token
	leases map[string]state.Lease
}

func newReference() *reference { return &reference{leases: map[string]state.Lease{}} }

func (r *reference) apply(index, term uint64, c state.Command) state.Result {
	l, there := r.leases[c.Name]
	held := there && l.Owner != ""
	mine := held && l.Token == c.Token && l.Owner == c.Owner
	current := held && l.Token == c.Token
	lost := state.Result{Code: state.NotLive}
	if held {
		lost.Lease = l
	}
	done := func() state.Result {
		r.leases[c.Name] = l
		return state.Result{Code: state.OK, Lease: l}
	}
	switch c.Kind {
	case state.KindAcquire:
		if held && l.Owner != c.Owner {
			return state.Result{Code: state.Held, Lease: l}
		}
		if held {
			if c.TTL > l.TTL {
				l.TTL = c.TTL
			}
			l.Revision = index
			if l.Session.Node != c.Session.Node || l.Session.Disk != c.Session.Disk {
				l.Session = state.Session{}
			} else if c.Session.Incarnation > l.Session.Incarnation {
				l.Session.Incarnation = c.Session.Incarnation
			}
			return done()
		}
		r.last++
		l = state.Lease{Name: c.Name, Owner: c.Owner, Token: r.last, TTL: c.TTL, Session: c.Session, Revision: index,
			Data: l.Data, DataToken: l.DataToken}
		res := done()
		res.New = true
		return res
	case state.KindRenew:
		if !mine {
			return lost
		}
		if c.TTL > l.TTL {
			l.TTL = c.TTL
		}
		l.Revision = index
		return done()
	case state.KindShorten:
		if !current {
			return lost
		}
		if c.TTL < l.TTL {
			l.TTL = c.TTL
		}
		return done()
	case state.KindPut:
		if !current {
			return lost
		}
		l.Data, l.DataToken = c.Data, c.Token
		if len(c.Data) == 0 {
			l.Data, l.DataToken = nil, 0
		}
		return done()
	case state.KindRelease:
		if !mine {
			return lost
		}
		return state.Result{Code: state.OK, Lease: l, Ended: r.free(index, l)}
	case state.KindBreak:
		if !held {
			return lost
		}
		return state.Result{Code: state.OK, Lease: l, Ended: r.free(index, l)}
	case state.KindExpire:
		var ended []state.Lease
		for _, e := range c.Ends {
			if l := r.leases[e.Name]; l.Owner != "" && l.Token == e.Token && l.Revision == e.Revision {
				ended = append(ended, r.free(index, l)...)
			}
		}
		return state.Result{Code: state.OK, Ended: sorted(ended)}
	case state.KindReclaim:
		var ended []state.Lease
		for _, l := range r.leases {
			if l.Session.Node == c.Session.Node && l.Session.Disk == c.Session.Disk && l.Session.Incarnation < c.Session.Incarnation {
				ended = append(ended, r.free(index, l)...)
			}
		}
		return state.Result{Code: state.OK, Ended: sorted(ended)}
	case state.KindEpoch:
		return state.Result{Code: state.OK, Term: term}
	}
	return state.Result{}
}

func (r *reference) free(index uint64, l state.Lease) []state.Lease {
	delete(r.leases, l.Name)
	if len(l.Data) > 0 {
		r.leases[l.Name] = state.Lease{Name: l.Name, Revision: index, Data: l.Data, DataToken: l.DataToken}
	}
	return []state.Lease{l}
}

func (r *reference) list() []state.Lease {
	var all []state.Lease
	for _, l := range r.leases {
		all = append(all, l)
	}
	return sorted(all)
}

func sorted(ls []state.Lease) []state.Lease {
	sort.Slice(ls, func(i, j int) bool { return ls[i].Name < ls[j].Name })
	return ls
}

// drawn makes rapid throw the dice of anyStep.
type drawn struct{ *rapid.T }

func (d drawn) IntN(n int) int { return rapid.IntRange(0, n-1).Draw(d.T, "die") }

func TestMachine_DoesWhatTheReferenceDoes(t *testing.T) { // G1, G2, G8
	rapid.Check(t, func(t *rapid.T) {
		m, ref := state.New("c1"), newReference()
		index, now, newest := uint64(0), uint64(1), uint64(0)
		t.Repeat(map[string]func(*rapid.T){
			"apply an entry": func(t *rapid.T) {
				index += uint64(rapid.IntRange(1, 3).Draw(t, "gap"))
				var cmds []state.Command
				for range rapid.IntRange(1, 4).Draw(t, "commands") {
					cmds = append(cmds, anyStep(drawn{t}, m, now))
				}
				e := state.Entry{Term: now, Commands: cmds}
				if rapid.IntRange(0, 9).Draw(t, "late") == 0 {
					e.Term--
				}
				got, err := m.Apply(index, now, state.EncodeEntry(e))
				if err != nil {
					t.Fatal(err)
				}
				for i, c := range cmds {
					if e.Term != now && c.Kind != state.KindEpoch {
						if !reflect.DeepEqual(got[i], state.Result{Code: state.Stale}) {
							t.Fatalf("%+v of an earlier term: got %+v, want Stale", c, got[i])
						}
						continue
					}
					if broken(c) {
						if got[i].Code != state.Rejected || got[i].Why == "" {
							t.Fatalf("%+v: got %+v, want Rejected", c, got[i])
						}
						continue
					}
					if want := ref.apply(index, now, c); !reflect.DeepEqual(got[i], want) {
						t.Fatalf("%+v: got %+v, want %+v", c, got[i], want)
					}
					if got[i].New {
						if got[i].Lease.Token <= newest {
							t.Fatalf("token %d after %d", got[i].Lease.Token, newest)
						}
						newest = got[i].Lease.Token
					}
				}
			},
			"change the term": func(*rapid.T) { now++ },
			"restore a snapshot": func(t *rapid.T) {
				m = restored(t, snapshotBytes(t, m))
			},
			"apply garbage": func(t *rapid.T) {
				if _, err := m.Apply(index+1, now, []byte{1, 1}); err == nil {
					t.Fatal("garbage was accepted")
				}
			},
			"": func(t *rapid.T) {
				live := 0
				for _, l := range ref.leases {
					if l.Owner != "" {
						live++
					}
				}
				if got, want := m.List(""), ref.list(); !reflect.DeepEqual(got, want) {
					t.Fatalf("state: got %+v, want %+v", got, want)
				}
				if m.Live() != live || m.NextToken() != ref.last+1 || m.Index() != index || m.ClusterID() != "c1" {
					t.Fatalf("live %d, next token %d, index %d of %q, want %d, %d, %d of c1",
						m.Live(), m.NextToken(), m.Index(), m.ClusterID(), live, ref.last+1, index)
				}
			},
		})
	})
}

// die is a source of choices.
type die interface{ IntN(n int) int }

const badTTL = time.Second + 1

// broken reports whether c breaks the limits in one of the ways of anyStep.
func broken(c state.Command) bool { return c.Name == " " || c.TTL == badTTL }

// anyStep returns a command that mostly fits the present state and is mostly
// within the limits, so that all outcomes happen.
func anyStep(d die, m *state.Machine, term uint64) state.Command {
	pick := func(list ...string) string { return list[d.IntN(len(list))] }
	seldom := func() bool { return d.IntN(12) == 11 }
	aim := func() state.Lease {
		l, _ := m.Get(pick("a", "a/b", "a/c", "b", "ö", "job"))
		if l.Token == 0 || seldom() {
			l.Name, l.Token = pick("a", "a/b", "b"), uint64(1+d.IntN(30))
		}
		if l.Owner == "" || seldom() {
			l.Owner = pick("x", "y", "z")
		}
		return l
	}
	session := func() state.Session {
		return state.Session{Node: pick("n1", "n2"), Disk: pick("d1", "d1", "d2"), Incarnation: uint64(d.IntN(5))}
	}
	l := aim()
	c := state.Command{Kind: state.Kind(1 + d.IntN(11)), Name: l.Name}
	ttl := time.Duration(1+d.IntN(20)) * time.Second
	if d.IntN(150) == 0 {
		ttl = badTTL
	}
	if d.IntN(150) == 0 {
		l.Name = " "
	}
	switch c.Kind {
	case state.KindRenew:
		return renew(l, ttl)
	case state.KindShorten:
		return shorten(l, ttl)
	case state.KindRelease:
		return release(l)
	case state.KindPut:
		return put(l, pick("", "1", "22", "333"))
	case state.KindBreak:
		return breakLease(l.Name)
	case state.KindReclaim:
		return reclaim(session())
	case state.KindEpoch:
		return state.Command{Kind: state.KindEpoch}
	case state.KindExpire:
		c = expire(l)
		for range d.IntN(3) {
			c.Ends = append(c.Ends, expire(aim()).Ends...)
		}
		return c
	}
	c = acquire(l.Name, pick("x", "y", "z"), ttl)
	if d.IntN(2) == 0 {
		c.Session = session()
	}
	return c
}
