package state_test

import (
	"bytes"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/raftlease/raftlease/internal/state"
)

// update rewrites testdata. Bytes that were ever in a release must not change:
// a new format gets a new version and new files beside the old ones.
var update = flag.Bool("update", false, "rewrite the golden files in testdata")

const term = 7 // of every entry that does not say otherwise

// TestMain lets the test binary be one of the processes of
// TestReplay_SameBytesInThreeProcesses.
func TestMain(m *testing.M) {
	if os.Getenv(replayVariable) != "" {
		os.Exit(replayInChild(os.Stdin, os.Stdout))
	}
	os.Exit(m.Run())
}

// tester is what testing and rapid have in common.
type tester interface {
	Helper()
	Fatalf(format string, args ...any)
}

// apply puts cmds into one entry behind the last one and returns the results.
func apply(t testing.TB, m *state.Machine, cmds ...state.Command) []state.Result {
	t.Helper()
	results, err := m.Apply(m.Index()+1, term, encode(cmds...))
	if err != nil {
		t.Fatalf("Apply: %v", err)
	}
	if len(results) != len(cmds) {
		t.Fatalf("Apply: got %d results for %d commands", len(results), len(cmds))
	}
	return results
}

// encode packs cmds into an entry that was decided in term.
func encode(cmds ...state.Command) []byte {
	return state.EncodeEntry(state.Entry{Term: term, Commands: cmds})
}

// do applies an entry with one command.
func do(t testing.TB, m *state.Machine, c state.Command) state.Result {
	t.Helper()
	return apply(t, m, c)[0]
}

// grant acquires a free name and returns the lease.
func grant(t testing.TB, m *state.Machine, name, owner string) state.Lease {
	t.Helper()
	r := do(t, m, acquire(name, owner, 10*time.Second))
	if r.Code != state.OK || !r.New {
		t.Fatalf("acquire of free %q: got %+v, want a new grant", name, r)
	}
	return r.Lease
}

func acquire(name, owner string, ttl time.Duration) state.Command {
	return state.Command{Kind: state.KindAcquire, Name: name, Owner: owner, TTL: ttl}
}

func acquireIn(name, owner string, s state.Session) state.Command {
	return state.Command{Kind: state.KindAcquire, Name: name, Owner: owner, TTL: 10 * time.Second, Session: s}
}

func renew(l state.Lease, ttl time.Duration) state.Command {
	return state.Command{Kind: state.KindRenew, Name: l.Name, Owner: l.Owner, Token: l.Token, TTL: ttl}
}

func shorten(l state.Lease, ttl time.Duration) state.Command {
	return state.Command{Kind: state.KindShorten, Name: l.Name, Token: l.Token, TTL: ttl}
}

func release(l state.Lease) state.Command {
	return state.Command{Kind: state.KindRelease, Name: l.Name, Owner: l.Owner, Token: l.Token}
}

func expire(ls ...state.Lease) state.Command {
	c := state.Command{Kind: state.KindExpire}
	for _, l := range ls {
		c.Ends = append(c.Ends, state.End{Name: l.Name, Token: l.Token, Revision: l.Revision})
	}
	return c
}

func put(l state.Lease, data string) state.Command {
	return state.Command{Kind: state.KindPut, Name: l.Name, Token: l.Token, Data: append([]byte(nil), data...)} // nil when empty
}

func breakLease(name string) state.Command {
	return state.Command{Kind: state.KindBreak, Name: name}
}

func reclaim(s state.Session) state.Command {
	return state.Command{Kind: state.KindReclaim, Session: s}
}

// holds fails unless the record of want's name is want.
func holds(t testing.TB, m *state.Machine, want state.Lease) {
	t.Helper()
	if got, _ := m.Get(want.Name); !reflect.DeepEqual(got, want) {
		t.Fatalf("record of %q: got %+v, want %+v", want.Name, got, want)
	}
}

// gone fails if name has a record.
func gone(t testing.TB, m *state.Machine, name string) {
	t.Helper()
	if got, ok := m.Get(name); ok {
		t.Fatalf("record of %q: got %+v, want none", name, got)
	}
}

// same fails unless got is exactly want.
func same(t testing.TB, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("%s: got %+v, want %+v", what, got, want)
	}
}

func snapshotBytes(t tester, m *state.Machine) []byte {
	t.Helper()
	var b bytes.Buffer
	n, err := m.Snapshot().WriteTo(&b)
	if err != nil || n != int64(b.Len()) {
		t.Fatalf("WriteTo: got %d, %v, want %d bytes", n, err, b.Len())
	}
	return b.Bytes()
}

// machineOf returns a machine restored from s.
func machineOf(t testing.TB, s *state.Snapshot) *state.Machine {
	t.Helper()
	var b bytes.Buffer
	if _, err := s.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	return restored(t, b.Bytes())
}

func restored(t tester, snapshot []byte) *state.Machine {
	t.Helper()
	m := state.New("")
	if err := m.Restore(bytes.NewReader(snapshot)); err != nil {
		t.Fatalf("Restore: %v", err)
	}
	return m
}

// golden returns the bytes in a file of testdata, which -update sets to got
// before. The file is hexadecimal, so that a change can be read.
func golden(t testing.TB, name string, got []byte) []byte {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		var b strings.Builder
		for rest := got; len(rest) > 0; rest = rest[min(32, len(rest)):] {
			fmt.Fprintf(&b, "%x\n", rest[:min(32, len(rest))])
		}
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b, err := hex.DecodeString(strings.Join(strings.Fields(string(text)), ""))
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return b
}
