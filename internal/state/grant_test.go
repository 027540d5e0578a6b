package state_test

import (
	"testing"
	"time"

	"github.com/raftlease/raftlease/internal/state"
)

func TestAcquire_FreeNameGetsTheNextToken(t *testing.T) { // G2
	m := state.New("c1")
	if got := m.NextToken(); got != 1 {
		t.Fatalf("next token of a new state: got %d, want 1", got)
	}
	r := do(t, m, acquireIn("job", "a", state.Session{Node: "n1", Disk: "d1", Incarnation: 3}))
	want := state.Lease{Name: "job", Owner: "a", Token: 1, TTL: 10 * time.Second,
		Session: state.Session{Node: "n1", Disk: "d1", Incarnation: 3}, Revision: 1}
	same(t, "result", r, state.Result{Code: state.OK, Lease: want, New: true})
	holds(t, m, want)
	if l := grant(t, m, "other", "a"); l.Token != 2 {
		t.Fatalf("token of the second grant: got %d, want 2: the counter is for all names", l.Token)
	}
	same(t, "live grants", m.Live(), 2)
}

func TestAcquire_HeldByAnotherIsHeldWithoutEffect(t *testing.T) { // G1
	m := state.New("c1")
	l := grant(t, m, "job", "a")
	r := do(t, m, acquire("job", "b", time.Minute))
	same(t, "result", r, state.Result{Code: state.Held, Lease: l})
	holds(t, m, l)
	same(t, "next token", m.NextToken(), l.Token+1)
}

func TestAcquire_TwoInOneEntryMakeOneGrant(t *testing.T) { // G1
	m := state.New("c1")
	rs := apply(t, m, acquire("job", "a", time.Second), acquire("job", "b", time.Second))
	if rs[0].Code != state.OK || rs[1].Code != state.Held || rs[1].Lease.Owner != "a" {
		t.Fatalf("got %+v, want the first to have it", rs)
	}
}

func TestAcquire_SameOwnerKeepsTokenAndLongerTTL(t *testing.T) { // G3
	for _, c := range []struct {
		name            string
		old, ttl, wants time.Duration
	}{
		{"a longer ttl is recorded", 10 * time.Second, time.Minute, time.Minute},
		{"a shorter ttl never lowers the recorded one", 10 * time.Second, time.Second, 10 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := state.New("c1")
			l := do(t, m, acquire("job", "a", c.old)).Lease
			r := do(t, m, acquire("job", "a", c.ttl))
			l.TTL, l.Revision = c.wants, 2
			same(t, "acquire", r, state.Result{Code: state.OK, Lease: l})
			holds(t, m, l)
			same(t, "next token", m.NextToken(), uint64(2))
			same(t, "live grants", m.Live(), 1)
		})
	}
}

func TestRenew_GrowsTTLAndRevision(t *testing.T) { // G3
	m := state.New("c1")
	l := grant(t, m, "job", "a")
	l.TTL, l.Revision = time.Minute, 2
	same(t, "longer", do(t, m, renew(l, time.Minute)), state.Result{Code: state.OK, Lease: l})
	l.Revision = 3
	same(t, "shorter", do(t, m, renew(l, time.Second)), state.Result{Code: state.OK, Lease: l})
	holds(t, m, l)
}

func TestRenewShortenReleasePut_NeedExactlyTheLiveGrant(t *testing.T) { // G1, G7
	m := state.New("c1")
	l := grant(t, m, "job", "a")
	other, token, free := l, l, l
	other.Owner = "b"
	token.Token++
	free.Name = "free"
	for _, c := range []struct {
		name string
		cmd  state.Command
		live state.Lease
	}{
		{"renew of another owner", renew(other, time.Minute), l},
		{"renew with another token", renew(token, time.Minute), l},
		{"renew of a free name", renew(free, time.Minute), state.Lease{}},
		{"shorten with another token", shorten(token, time.Second), l},
		{"shorten of a free name", shorten(free, time.Second), state.Lease{}},
		{"release of another owner", release(other), l},
		{"release with another token", release(token), l},
		{"release of a free name", release(free), state.Lease{}},
		{"put with another token", put(token, "x"), l},
		{"put of a free name", put(free, "x"), state.Lease{}},
		{"break of a free name", breakLease("free"), state.Lease{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			same(t, "result", do(t, m, c.cmd), state.Result{Code: state.NotLive, Lease: c.live})
			holds(t, m, l)
			same(t, "records", len(m.List("")), 1)
		})
	}
}

func TestShorten_LowersTTLAndKeepsRevision(t *testing.T) {
	m := state.New("c1")
	l := grant(t, m, "job", "a")
	same(t, "longer", do(t, m, shorten(l, time.Minute)), state.Result{Code: state.OK, Lease: l})
	before := l
	l.TTL = time.Second
	same(t, "shorter", do(t, m, shorten(l, time.Second)), state.Result{Code: state.OK, Lease: l})
	holds(t, m, l)
	// An expiry that was announced is not undone by it.
	same(t, "expiry", do(t, m, expire(before)).Ended, []state.Lease{l})
}

func TestRelease_FreesExactlyThatGrant(t *testing.T) {
	m := state.New("c1")
	l, other := grant(t, m, "job", "a"), grant(t, m, "other", "a")
	same(t, "result", do(t, m, release(l)), state.Result{Code: state.OK, Lease: l, Ended: []state.Lease{l}})
	gone(t, m, "job")
	holds(t, m, other)
	same(t, "live grants", m.Live(), 1)
	same(t, "again", do(t, m, release(l)), state.Result{Code: state.NotLive})
}

func TestTokens_RiseOverReleaseExpireBreakAndReclaim(t *testing.T) { // G2, case 11
	m := state.New("c1")
	s := state.Session{Node: "n1", Disk: "d1", Incarnation: 1}
	last := uint64(0)
	for i, end := range []func(state.Lease) state.Command{
		release,
		func(l state.Lease) state.Command { return expire(l) },
		func(l state.Lease) state.Command { return breakLease(l.Name) },
		func(state.Lease) state.Command {
			return reclaim(state.Session{Node: "n1", Disk: "d1", Incarnation: 2})
		},
	} {
		r := do(t, m, acquireIn("job", "a", s))
		if !r.New || r.Lease.Token <= last {
			t.Fatalf("grant %d: got %+v, want a token above %d", i, r, last)
		}
		last = r.Lease.Token
		same(t, "ended", do(t, m, end(r.Lease)).Ended, []state.Lease{r.Lease})
		gone(t, m, "job")
		m = restored(t, snapshotBytes(t, m))
	}
}

func TestAcquire_RejectedWhenTokensAreUsedUp(t *testing.T) { // G2
	m := state.New("c1")
	l := grant(t, m, "job", "a")
	s := m.Snapshot()
	if err := s.AddTokenGap(1<<53 - 3); err != nil {
		t.Fatal(err)
	}
	m = machineOf(t, s)
	last := grant(t, m, "last", "a")
	if last.Token != 1<<53-1 {
		t.Fatalf("last token: got %d, want 2^53-1", last.Token)
	}
	same(t, "renew with the last token", do(t, m, renew(last, time.Second)).Code, state.OK)
	for range 2 {
		r := do(t, m, acquire("more", "a", time.Second))
		if r.Code != state.Rejected || r.Why == "" {
			t.Fatalf("acquire without tokens: got %+v, want Rejected", r)
		}
	}
	gone(t, m, "more")
	same(t, "acquire of the owner", do(t, m, acquire("job", "a", time.Second)).Code, state.OK)
	same(t, "acquire of another", do(t, m, acquire("job", "b", time.Second)).Code, state.Held)
	same(t, "renew", do(t, m, renew(l, time.Second)).Code, state.OK)
	same(t, "next token", m.NextToken(), uint64(1<<53))
	m = restored(t, snapshotBytes(t, m))
	same(t, "next token after restore", m.NextToken(), uint64(1<<53))
}

func TestEpoch_AnswersTheTermOfTheEntry(t *testing.T) {
	m := state.New("c1")
	rs, err := m.Apply(5, 42, encode(state.Command{Kind: state.KindEpoch}))
	if err != nil {
		t.Fatal(err)
	}
	same(t, "results", rs, []state.Result{{Code: state.OK, Term: 42}})
	same(t, "index", m.Index(), uint64(5))
}
