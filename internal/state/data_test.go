package state_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/raftlease/raftlease/internal/state"
)

func TestPut_WritesForTheLiveTokenOnly(t *testing.T) { // G7
	m := state.New("c1")
	l := grant(t, m, "job", "a")
	want := l
	want.Data, want.DataToken = []byte("one"), l.Token
	same(t, "result", do(t, m, put(l, "one")), state.Result{Code: state.OK, Lease: want})
	holds(t, m, want) // the revision is that of the grant
	do(t, m, release(l))
	next := grant(t, m, "job", "a")
	if string(next.Data) != "one" || next.DataToken != l.Token {
		t.Fatalf("data for the next holder: got %q of token %d, want the last one's", next.Data, next.DataToken)
	}
	same(t, "put of the holder before", do(t, m, put(l, "late")), state.Result{Code: state.NotLive, Lease: next})
	holds(t, m, next)
	want = next
	want.Data, want.DataToken = []byte("two"), next.Token
	same(t, "put of the holder", do(t, m, put(next, "two")).Lease, want)
}

func TestPut_EmptyDataRemoves(t *testing.T) {
	m := state.New("c1")
	l := grant(t, m, "job", "a")
	do(t, m, put(l, "x"))
	same(t, "result", do(t, m, put(l, "")), state.Result{Code: state.OK, Lease: l})
	holds(t, m, l)
	do(t, m, release(l))
	gone(t, m, "job")
}

func TestData_OutlivesTheGrant(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(state.Lease) state.Command
	}{
		{"release", release},
		{"expire", func(l state.Lease) state.Command { return expire(l) }},
		{"break", func(l state.Lease) state.Command { return breakLease(l.Name) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := state.New("c1")
			l := grant(t, m, "job", "a")
			l = do(t, m, put(l, "x")).Lease
			same(t, "ended", do(t, m, c.end(l)).Ended, []state.Lease{l})
			free := state.Lease{Name: "job", Revision: 3, Data: []byte("x"), DataToken: l.Token}
			holds(t, m, free)
			same(t, "live grants", m.Live(), 0)
			same(t, "records", m.List(""), []state.Lease{free})
			same(t, "put without grant", do(t, m, put(l, "y")), state.Result{Code: state.NotLive})
			same(t, "break of a free record", do(t, m, breakLease("job")), state.Result{Code: state.NotLive})
			token0 := state.Command{Kind: state.KindPut, Name: "job", Data: []byte("y")}
			same(t, "put with token 0", do(t, m, token0).Code, state.Rejected)
			holds(t, m, free)
		})
	}
}

func TestPut_TakesAsMuchAsIsAllowed(t *testing.T) {
	m := state.New("c1")
	l := grant(t, m, "job", "a")
	full := bytes.Repeat([]byte{0xa5}, 64<<10)
	l = do(t, m, put(l, string(full))).Lease
	same(t, "bytes of data", len(l.Data), 64<<10)
	more := state.Command{Kind: state.KindPut, Name: "job", Token: l.Token, Data: append(full, 1)}
	r := do(t, m, more)
	if r.Code != state.Rejected || r.Why != "data is longer, want at most 65536 bytes" {
		t.Fatalf("put of one byte more: got %+v, want Rejected", r)
	}
	holds(t, m, l)
	holds(t, restored(t, snapshotBytes(t, m)), l)
}

// Whoever changes what the machine gave or was given must not make replicas
// differ.
func TestMachine_SharesNoMemory(t *testing.T) { // G8
	m := state.New("c1")
	l := grant(t, m, "job", "a")
	given := []byte("data")
	rs := m.ApplyEntry(2, term, state.Entry{Term: term, Commands: []state.Command{{Kind: state.KindPut, Name: "job", Token: l.Token, Data: given}}})
	given[0] = 'X'
	want := rs[0].Lease
	want.Data = []byte("data")
	spoil := func(data []byte) {
		t.Helper()
		same(t, "data", string(data), "data")
		data[0] = 'X'
		holds(t, m, want)
	}
	spoil(rs[0].Lease.Data)
	got, _ := m.Get("job")
	spoil(got.Data)
	spoil(m.List("")[0].Data)
	spoil(do(t, m, acquire("job", "b", time.Second)).Lease.Data)
	spoil(do(t, m, shorten(l, time.Minute)).Lease.Data)
	spoil(do(t, m, release(state.Lease{Name: "job", Owner: "b", Token: l.Token})).Lease.Data)
	for got := range m.Snapshot().All("") {
		spoil(got.Data)
	}
	ended := do(t, m, breakLease("job"))
	ended.Ended[0].Data[0] = 'X'
	free, _ := m.Get("job")
	same(t, "data after the end", string(free.Data), "data")
	entry := encode(state.Command{Kind: state.KindPut, Name: "job", Token: 1, Data: []byte("data")})
	e, err := state.DecodeEntry(entry)
	if err != nil {
		t.Fatal(err)
	}
	clear(entry)
	same(t, "decoded data", string(e.Commands[0].Data), "data")
}
