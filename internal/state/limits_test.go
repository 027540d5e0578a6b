package state_test

import (
	"strings"
	"testing"
	"time"

	"github.com/raftlease/raftlease/internal/state"
	"github.com/raftlease/raftlease/lease"
)

func TestCommands_BeyondTheLimitsAreRejectedWithoutEffect(t *testing.T) { // G8
	long := strings.Repeat("x", 256)
	ok := state.Lease{Name: "job", Owner: "a", Token: 1}
	named := func(name string) state.Lease { return state.Lease{Name: name, Owner: "a", Token: 1} }
	owned := func(owner string) state.Lease { return state.Lease{Name: "job", Owner: owner, Token: 1} }
	token := func(token uint64) state.Lease { return state.Lease{Name: "job", Owner: "a", Token: token} }
	in := func(node, disk string, i uint64) state.Session {
		return state.Session{Node: node, Disk: disk, Incarnation: i}
	}
	for _, c := range []struct {
		why string
		cmd state.Command
	}{
		{"name is empty", acquire("", "a", time.Second)},
		{"name is longer", acquire(long, "a", time.Second)},
		{"valid UTF-8", acquire("a\xff", "a", time.Second)},
		{"no control", acquire("a\x00b", "a", time.Second)},
		{"no control", acquire("a\x1fb", "a", time.Second)},
		{"no control", acquire("a\x7fb", "a", time.Second)},
		{"no control", acquire("a\u0080b", "a", time.Second)},
		{"no control", acquire("a\u009fb", "a", time.Second)},
		{"no leading", acquire(" a", "a", time.Second)},
		{"no leading", acquire("a ", "a", time.Second)},
		{"owner is empty", acquire("job", "", time.Second)},
		{"owner is longer", acquire("job", long, time.Second)},
		{"ttl is 0s", acquire("job", "a", 0)},
		{"ttl is -1s", acquire("job", "a", -time.Second)},
		{"ttl is 999", acquire("job", "a", time.Millisecond-1)},
		{"whole milli", acquire("job", "a", time.Second+1)},
		{"1 ms to 10", acquire("job", "a", 10*365*24*time.Hour+time.Millisecond)},
		{"name is empty, want 1 to 255 bytes; owner is empty, want 1 to 255 bytes; ttl is 0s", acquire("", "", 0)},
		{"session node is empty", acquireIn("job", "a", in("", "d", 1))},
		{"session disk is empty", acquireIn("job", "a", in("n", "", 1))},
		{"session node is empty", acquireIn("job", "a", in("", "", 1))},
		{"session disk is longer", acquireIn("job", "a", in("n", long, 1))},
		{"name is empty", renew(named(""), time.Second)},
		{"owner is empty", renew(owned(""), time.Second)},
		{"token is 0", renew(token(0), time.Second)},
		{"token is 9007199254740992", renew(token(1<<53), time.Second)},
		{"ttl is 0s", renew(ok, 0)},
		{"name is empty", shorten(named(""), time.Second)},
		{"token is 0", shorten(token(0), time.Second)},
		{"ttl is 0s", shorten(ok, 0)},
		{"name is empty", release(named(""))},
		{"owner is empty", release(owned(""))},
		{"token is 0", release(token(0))},
		{"name is empty", put(named(""), "x")},
		{"token is 0", put(token(0), "x")},
		{"data is longer", put(ok, strings.Repeat("x", 64<<10+1))},
		{"name is empty", breakLease("")},
		{"session node is empty", reclaim(in("", "d", 9))},
		{"session disk is empty", reclaim(in("n", "", 9))},
		{"session node is empty", reclaim(in("", "", 9))},
	} {
		t.Run(c.why, func(t *testing.T) {
			m := state.New("c1")
			l := grant(t, m, "job", "a")
			r := do(t, m, c.cmd)
			if r.Code != state.Rejected || !strings.Contains(r.Why, c.why) {
				t.Fatalf("got %+v, want Rejected because %s", r, c.why)
			}
			same(t, "the rest of the result", r, state.Result{Code: state.Rejected, Why: r.Why})
			same(t, "records", m.List(""), []state.Lease{l})
			same(t, "next token", m.NextToken(), uint64(2))
		})
	}
}

func TestApplyCommands_UnknownKindIsRejected(t *testing.T) { // G8
	m := state.New("c1")
	for _, kind := range []state.Kind{0, state.KindEpoch + 1} {
		if r := m.ApplyEntry(1, term, state.Entry{Term: term, Commands: []state.Command{{Kind: kind}}})[0]; r.Code != state.Rejected || r.Why == "" {
			t.Fatalf("kind %d: got %+v, want Rejected", kind, r)
		}
	}
}

func TestCommands_AtTheLimitsAreAccepted(t *testing.T) {
	long := strings.Repeat("ü", 127) + "x" // 255 bytes
	for _, c := range []state.Command{
		acquire(long, long, 10*365*24*time.Hour),
		acquire("x", "y", time.Millisecond),
		acquire("in side", "\u00a0~", time.Second),
		acquireIn("job", "a", state.Session{Node: long, Disk: long}),
	} {
		m := state.New("c1")
		r := do(t, m, c)
		if r.Code != state.OK {
			t.Fatalf("%+v: got %+v, want OK", c, r)
		}
		holds(t, restored(t, snapshotBytes(t, m)), r.Lease)
	}
}

// The state accepts everything that package lease accepts. What it accepts is
// part of the log format: when lease gets wider, the state must not follow
// without a new entry format.
func TestLimits_ThoseOfPackageLeaseFit(t *testing.T) {
	same(t, "lease.MaxNameLen", lease.MaxNameLen, 255)
	same(t, "lease.MaxDataLen", lease.MaxDataLen, 64<<10)
	same(t, "lease.MaxToken", uint64(lease.MaxToken), uint64(1<<53-1))
	for r := rune(0); r < 0x3100; r++ {
		name := "a" + string(r) + "b"
		got := do(t, state.New("c1"), acquire(name, "a", time.Second)).Code
		if want := lease.CheckName(name) == nil; (got == state.OK) != want {
			t.Fatalf("name %q: accepted by the state %v, by package lease %v", name, got == state.OK, want)
		}
	}
}
