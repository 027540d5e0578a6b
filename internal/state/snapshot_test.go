package state_test

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/raftlease/raftlease/internal/state"
)

// goldenMachine has records of every shape.
func goldenMachine(t testing.TB) *state.Machine {
	t.Helper()
	m := state.New("cluster-1")
	if _, err := m.Apply(3, term, encode(goldenCommands()...)); err != nil {
		t.Fatal(err)
	}
	apply(t, m,
		acquireIn("held in a session", "n/2", state.Session{Node: "n", Disk: "d", Incarnation: 2}),
		acquire("held with data", "b", time.Minute),
		put(state.Lease{Name: "held with data", Token: 6}, "more"),
	)
	return m
}

func TestSnapshot_GoldenBytes(t *testing.T) {
	m := goldenMachine(t)
	got := snapshotBytes(t, m)
	want := golden(t, "snapshot-v1.hex", got)
	if !bytes.Equal(got, want) {
		t.Fatalf("snapshot changed: got\n%x, want\n%x", got, want)
	}
	r := restored(t, want)
	same(t, "records", r.List(""), m.List(""))
	same(t, "next token", r.NextToken(), m.NextToken())
	same(t, "index", r.Index(), m.Index())
	same(t, "live grants", r.Live(), m.Live())
	same(t, "cluster id", r.ClusterID(), "cluster-1")
	hash := m.Hash()
	same(t, "hash at the end", want[len(want)-32:], hash[:])
	same(t, "bytes", snapshotBytes(t, r), want)
}

func TestSnapshot_OfTheEmptyState(t *testing.T) {
	m := restored(t, snapshotBytes(t, state.New("")))
	if m.NextToken() != 1 || m.Index() != 0 || m.Live() != 0 || len(m.List("")) != 0 {
		t.Fatalf("got next token %d, index %d, %d live", m.NextToken(), m.Index(), m.Live())
	}
}

func TestHash_DiffersWhenAnythingDiffers(t *testing.T) {
	seen := map[[32]byte]string{}
	for name, cmds := range map[string][]state.Command{
		"nothing":       {},
		"a grant":       {acquire("job", "a", time.Second)},
		"another name":  {acquire("job2", "a", time.Second)},
		"another owner": {acquire("job", "b", time.Second)},
		"another ttl":   {acquire("job", "a", 2*time.Second)},
		"a session":     {acquireIn("job", "a", state.Session{Node: "n", Disk: "d"})},
		"data":          {acquire("job", "a", time.Second), put(state.Lease{Name: "job", Token: 1}, "x")},
		"other data":    {acquire("job", "a", time.Second), put(state.Lease{Name: "job", Token: 1}, "y")},
		"a token used":  {acquire("job", "a", time.Second), breakLease("job")},
	} {
		m := state.New("c1")
		apply(t, m, cmds...)
		if other, ok := seen[m.Hash()]; ok {
			t.Errorf("%s and %s have the same hash", name, other)
		}
		seen[m.Hash()] = name
	}
	one, two := state.New("c1"), state.New("c2")
	if one.Hash() == two.Hash() {
		t.Error("two clusters have the same hash")
	}
	apply(t, two)
	if apply(t, one); seen[one.Hash()] != "nothing" {
		t.Error("two empty states at the same index have different hashes")
	}
}

func TestSnapshot_LaterAppliesDoNotChangeIt(t *testing.T) {
	m := state.New("c1")
	var first []state.Lease
	for _, name := range []string{"a", "b", "c"} {
		first = append(first, grant(t, m, name, "x"))
	}
	s := m.Snapshot()
	before := s.Hash()
	apply(t, m, acquire("a", "x", time.Hour), put(first[0], "x"), breakLease("b"), acquire("d", "x", time.Second))
	same(t, "hash", s.Hash(), before)
	same(t, "records", slices.Collect(s.All("")), first)
	same(t, "index", s.Index(), uint64(3))
	same(t, "live grants", s.Live(), 3)
	same(t, "cluster id", s.ClusterID(), "c1")
	for l := range s.All("") {
		same(t, "first of an iteration that stops", l.Name, "a")
		break
	}
}

func TestSnapshot_AddTokenGap(t *testing.T) { // G2
	m := state.New("c1")
	grant(t, m, "job", "a")
	s := m.Snapshot()
	if err := s.AddTokenGap(1 << 32); err != nil {
		t.Fatal(err)
	}
	same(t, "next token", s.NextToken(), uint64(1<<32+2))
	same(t, "next token of the machine", m.NextToken(), uint64(2))
	same(t, "token after restore", grant(t, machineOf(t, s), "other", "a").Token, uint64(1<<32+2))
	for _, n := range []uint64{1<<53 - 1 - s.NextToken() + 1, 1 << 63, 1<<64 - 1} {
		if err := s.AddTokenGap(n); err == nil || !strings.Contains(err.Error(), "2^53-1") {
			t.Fatalf("gap of %d: got %v, want a refusal", n, err)
		}
		same(t, "next token after a refusal", s.NextToken(), uint64(1<<32+2))
	}
	if err := s.AddTokenGap(1<<53 - 1 - s.NextToken()); err != nil {
		t.Fatal(err)
	}
	same(t, "highest next token", s.NextToken(), uint64(1<<53-1))
	m = machineOf(t, s)
	grant(t, m, "last", "a")
	used := m.Snapshot()
	if used.AddTokenGap(1) == nil || used.AddTokenGap(0) != nil {
		t.Fatal("a state without tokens: want a gap of 1 refused, one of 0 done")
	}
}

func TestRestore_OfAnotherClusterOnlyOnPurpose(t *testing.T) {
	b := snapshotBytes(t, goldenMachine(t))
	m := state.New("cluster-2")
	grant(t, m, "job", "a")
	before := m.Hash()
	err := m.Restore(bytes.NewReader(b))
	if err == nil || !strings.Contains(err.Error(), `"cluster-1"`) || !strings.Contains(err.Error(), `"cluster-2"`) {
		t.Fatalf("got %v, want an error that names both clusters", err)
	}
	same(t, "hash", m.Hash(), before)
	s, err := state.ReadSnapshot(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	s.SetClusterID("cluster-2")
	var moved bytes.Buffer
	if _, err := s.WriteTo(&moved); err != nil {
		t.Fatal(err)
	}
	if err := m.Restore(&moved); err != nil {
		t.Fatal(err)
	}
	same(t, "cluster id", m.ClusterID(), "cluster-2")
	same(t, "records", m.List(""), slices.Collect(s.All("")))
}

func TestClusterID_TooLongPanics(t *testing.T) {
	long := strings.Repeat("x", 256)
	state.New(long[:255])
	for method, call := range map[string]func(){
		"state.New":          func() { state.New(long) },
		"state.SetClusterID": func() { state.New("").Snapshot().SetClusterID(long) },
	} {
		func() {
			defer func() {
				if text, _ := recover().(string); !strings.HasPrefix(text, method) {
					t.Errorf("got panic %q, want one that names %s", text, method)
				}
			}()
			call()
		}()
	}
}

// failingWriter takes left bytes and then fails.
type failingWriter struct{ left int }

var errDisk = errors.New("disk is full")

func (w *failingWriter) Write(p []byte) (int, error) {
	if len(p) > w.left {
		return w.left, errDisk
	}
	w.left -= len(p)
	return len(p), nil
}

func TestWriteTo_ReportsTheWritersError(t *testing.T) {
	m := state.New("c1")
	var cmds []state.Command
	for i := range 10 { // so that several buffers are written
		l := grant(t, m, string(rune('a'+i)), "x")
		cmds = append(cmds, put(l, strings.Repeat("x", 64<<10)))
	}
	apply(t, m, cmds...)
	whole := len(snapshotBytes(t, m))
	for _, left := range []int{0, 1, 100 << 10, whole - 40, whole - 1} {
		n, err := m.Snapshot().WriteTo(&failingWriter{left})
		if !errors.Is(err, errDisk) || n != int64(left) {
			t.Fatalf("room for %d of %d: got %d, %v", left, whole, n, err)
		}
	}
	if _, err := m.Snapshot().WriteTo(&failingWriter{whole}); err != nil {
		t.Fatal(err)
	}
}

func TestRestore_ReportsTheReadersError(t *testing.T) {
	b := snapshotBytes(t, goldenMachine(t))
	for _, n := range []int{0, 3, 8, 9, 30, len(b) - 32, len(b) - 1, len(b)} {
		m := goldenMachine(t)
		err := m.Restore(io.MultiReader(bytes.NewReader(b[:n]), iotest.ErrReader(errDisk)))
		if fe := (*state.FormatError)(nil); !errors.Is(err, errDisk) || errors.As(err, &fe) {
			t.Fatalf("after %d of %d bytes: got %v, want %v and no *FormatError", n, len(b), err, errDisk)
		}
	}
	if err := state.New("").Restore(iotest.OneByteReader(bytes.NewReader(b))); err != nil {
		t.Fatalf("byte by byte: %v", err)
	}
}
