package state_test

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/raftlease/raftlease/internal/state"
)

const million = 1_000_000

// big returns a machine with a million leases and its snapshot, made once.
var big = sync.OnceValue(func() []byte {
	m := state.New("c1")
	var cmds []state.Command
	index := uint64(0)
	for i := range million {
		cmds = append(cmds, acquireIn(bigName(i), "node-1/12", state.Session{Node: "node-1", Disk: "8c6f2a91", Incarnation: 12}))
		if len(cmds) == 500 {
			index++
			m.ApplyEntry(index, term, state.Entry{Term: term, Commands: cmds})
			cmds = cmds[:0]
		}
	}
	var b bytes.Buffer
	if _, err := m.Snapshot().WriteTo(&b); err != nil {
		panic(err)
	}
	return b.Bytes()
})

// bigName spreads consecutive numbers over the whole range.
func bigName(i int) string { return fmt.Sprintf("jobs/%08x/run", uint32(i)*2654435761) }

func bigMachine(b *testing.B) *state.Machine {
	b.Helper()
	m := restored(b, big())
	if m.Live() != million {
		b.Fatalf("%d leases", m.Live())
	}
	b.ResetTimer()
	return m
}

// renewals returns entries of 100 commands each that refresh leases all over
// the state.
func renewals(m *state.Machine, entries int) [][]byte {
	var out [][]byte
	for e := range entries {
		var cmds []state.Command
		for i := range 100 {
			l, _ := m.Get(bigName((e*100 + i) % million))
			cmds = append(cmds, renew(l, time.Minute))
		}
		out = append(out, encode(cmds...))
	}
	return out
}

func BenchmarkApply(b *testing.B) {
	for _, c := range []struct {
		name   string
		leases int
	}{{"1000 leases", 1000}, {"1M leases", million}} {
		b.Run(c.name, func(b *testing.B) {
			m := state.New("c1")
			if c.leases == million {
				m = bigMachine(b)
			} else {
				for i := range c.leases {
					do(b, m, acquire(bigName(i), "node-1/12", time.Minute))
				}
			}
			var entries [][]byte
			for e := range 1000 {
				var cmds []state.Command
				for i := range 50 { // a release and a grant each
					l, ok := m.Get(bigName((e*50 + i) % c.leases))
					if !ok {
						b.Fatal("no lease")
					}
					cmds = append(cmds, breakLease(l.Name), acquire(l.Name, "node-1/12", time.Minute))
				}
				entries = append(entries, encode(cmds...))
			}
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				if _, err := m.Apply(m.Index()+1, term, entries[n%len(entries)]); err != nil {
					b.Fatal(err)
				}
				n++
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n*100), "ns/command")
		})
	}
}

// BenchmarkSnapshot_HoldUp measures what a snapshot of a million leases costs
// the applies: taking it, and the first entries after it, against the same
// entries without one.
func BenchmarkSnapshot_HoldUp(b *testing.B) {
	m := bigMachine(b)
	entries := renewals(m, 2000)
	for _, with := range []bool{false, true} {
		b.Run(fmt.Sprintf("snapshot %v", with), func(b *testing.B) {
			var took []time.Duration
			n := 0
			for b.Loop() {
				start := time.Now()
				if with {
					m.Snapshot()
				}
				if _, err := m.Apply(m.Index()+1, term, entries[n%len(entries)]); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(start))
				n++
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
			b.ReportMetric(float64(took[len(took)-1].Microseconds()), "max-µs")
		})
	}
}

func BenchmarkSnapshot_Take(b *testing.B) {
	m := bigMachine(b)
	for b.Loop() {
		m.Snapshot()
	}
}

func BenchmarkSnapshot_WriteTo(b *testing.B) {
	m := bigMachine(b)
	b.SetBytes(int64(len(big())))
	for b.Loop() {
		if _, err := m.Snapshot().WriteTo(io.Discard); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRestore(b *testing.B) {
	b.SetBytes(int64(len(big())))
	for b.Loop() {
		restored(b, big())
	}
}

func BenchmarkRead(b *testing.B) {
	m := bigMachine(b)
	b.Run("Get", func(b *testing.B) {
		i := 0
		for b.Loop() {
			if _, ok := m.Get(bigName(i % million)); !ok {
				b.Fatal("no lease")
			}
			i++
		}
	})
	b.Run("List of 16", func(b *testing.B) {
		for b.Loop() {
			if len(m.List("jobs/00100")) == 0 {
				b.Fatal("no lease")
			}
		}
	})
	b.Run("List of all", func(b *testing.B) {
		for b.Loop() {
			if len(m.List("")) != million {
				b.Fatal("no lease")
			}
		}
	})
	b.Run("Reclaim of none", func(b *testing.B) {
		for b.Loop() {
			do(b, m, reclaim(state.Session{Node: "n", Disk: "d", Incarnation: 1}))
		}
	})
}

func BenchmarkEntry(b *testing.B) {
	var cmds []state.Command
	for i := range 100 {
		cmds = append(cmds, acquire(bigName(i), "node-1/12", time.Minute))
	}
	entry := encode(cmds...)
	b.Run("Encode 100", func(b *testing.B) {
		b.SetBytes(int64(len(entry)))
		b.ReportAllocs()
		for b.Loop() {
			encode(cmds...)
		}
	})
	b.Run("Decode 100", func(b *testing.B) {
		b.SetBytes(int64(len(entry)))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := state.DecodeEntry(entry); err != nil {
				b.Fatal(err)
			}
		}
	})
}
