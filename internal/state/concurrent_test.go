package state_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/raftlease/raftlease/internal/state"
)

// manyNames returns a log that grants, changes and ends leases of many names.
func manyNames(entries int) []logEntry {
	d := rand.New(rand.NewPCG(5, 1))
	m := state.New("c1")
	var log []logEntry
	for i := range entries {
		var cmds []state.Command
		for range 20 {
			name := fmt.Sprintf("%c/%04d", 'a'+d.IntN(4), d.IntN(2000))
			switch l, held := m.Get(name); {
			case !held || d.IntN(3) > 0:
				cmds = append(cmds, acquire(name, "x", time.Second))
			case d.IntN(2) == 0:
				cmds = append(cmds, put(l, "data"))
			default:
				cmds = append(cmds, breakLease(name))
			}
		}
		e := logEntry{Index: uint64(i + 1), Term: term, Data: encode(cmds...)}
		m.ApplyEntry(e.Index, e.Term, state.Entry{Term: e.Term, Commands: cmds})
		log = append(log, e)
	}
	return log
}

// Snapshots and reads are taken while entries are applied. Each snapshot must be
// the state at exactly its index.
func TestMachine_ReadersAndSnapshotsBesideOneWriter(t *testing.T) {
	log := manyNames(250)
	m := state.New("c1")
	replay(t, m, log[:50])
	stop := make(chan struct{})
	var readers sync.WaitGroup
	read := func(f func()) {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					f()
				}
			}
		})
	}
	var snapshots [2][]*state.Snapshot
	var written [2][]*bytes.Buffer
	for i := range snapshots {
		read(func() {
			s, b := m.Snapshot(), &bytes.Buffer{}
			if _, err := s.WriteTo(b); err != nil {
				t.Error(err)
			}
			snapshots[i], written[i] = append(snapshots[i], s), append(written[i], b)
		})
	}
	read(func() {
		last := ""
		for _, l := range m.List("b/") {
			if !strings.HasPrefix(l.Name, "b/") || l.Name <= last {
				t.Errorf("List: %q after %q", l.Name, last)
			}
			last = l.Name
		}
	})
	read(func() {
		if l, ok := m.Get("a/0001"); ok && l.Name != "a/0001" {
			t.Errorf("Get: got %+v", l)
		}
		if m.Live() < 0 || m.NextToken() == 0 || m.Index() < 50 || m.ClusterID() != "c1" {
			t.Error("a count is wrong")
		}
	})
	replay(t, m, log[50:])
	close(stop)
	readers.Wait()
	at := map[uint64][]byte{}
	again := state.New("c1")
	for _, e := range log {
		replay(t, again, []logEntry{e})
		at[e.Index] = snapshotBytes(t, again)
	}
	n := 0
	for i := range snapshots {
		for j, s := range snapshots[i] {
			n++
			if want := at[s.Index()]; !bytes.Equal(written[i][j].Bytes(), want) || s.Hash() != [32]byte(want[len(want)-32:]) {
				t.Fatalf("snapshot at index %d is not the state there", s.Index())
			}
		}
	}
	t.Logf("%d snapshots of up to %d records", n, len(m.List("")))
}

func TestList_ByPrefixInByteOrder(t *testing.T) {
	m := state.New("c1")
	for _, name := range []string{"b", "a/b", "ä", "a", "a/", "a0", "Z", "a/\u00ff"} {
		grant(t, m, name, "x")
	}
	for prefix, want := range map[string]string{
		"":     "Z a a/ a/b a/ÿ a0 b ä",
		"a":    "a a/ a/b a/ÿ a0",
		"a/":   "a/ a/b a/ÿ",
		"ä":    "ä",
		"\xc3": "ä",
		"c":    "",
		"zzz":  "",
	} {
		var got []string
		for _, l := range m.List(prefix) {
			got = append(got, l.Name)
		}
		same(t, "List of "+prefix, strings.Join(got, " "), want)
	}
}
