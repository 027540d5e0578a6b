package raftlease

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/raftlease/raftlease/internal/state"
	"github.com/raftlease/raftlease/lease"
)

func entry(index, term uint64, cmds ...state.Command) *raft.Log {
	return &raft.Log{Index: index, Term: term, Data: state.EncodeEntry(state.Entry{Term: term, Commands: cmds})}
}

func acquireCmd(name, owner string) state.Command {
	return state.Command{Kind: state.KindAcquire, Name: name, Owner: owner, TTL: ttl}
}

// newTestFSM fails the test when the machine asks its node to stop, unless broken
// is given.
func newTestFSM(t *testing.T, broken func(error)) *fsm {
	if broken == nil {
		broken = func(err error) { t.Errorf("the state machine stopped: %v", err) }
	}
	return newFSM("x", broken, func() {})
}

// G8: an entry that this build cannot read stops the node before anything of it
// is applied, and nothing is applied after it.
func TestFSM_StopsAtWhatItCannotRead(t *testing.T) {
	stopped := make(chan error, 2)
	f := newTestFSM(t, func(err error) { stopped <- err })
	f.Apply(entry(1, 1, acquireCmd("a", "x")))
	before := f.machine.Hash()
	for index, data := range [][]byte{{99, 1, 1}, state.EncodeEntry(state.Entry{Term: 1, Commands: []state.Command{acquireCmd("b", "x")}})} {
		r := f.Apply(&raft.Log{Index: uint64(index + 2), Term: 1, Data: data})
		err, ok := r.(error)
		if !ok || !strings.Contains(err.Error(), "log entry 2 of term 1") || !strings.Contains(err.Error(), "newer") {
			t.Errorf("apply entry %d: %v, want an error that names entry 2 and says what to do", index+2, r)
		}
	}
	if f.machine.Hash() != before {
		t.Error("the state changed")
	}
	<-stopped
	if len(stopped) != 0 {
		t.Error("the node was asked to stop twice")
	}
	if _, err := f.Snapshot(); err == nil {
		t.Error("a snapshot was taken behind an entry that was not applied")
	}
}

// sink is a raft.SnapshotSink in memory.
type sink struct {
	bytes.Buffer
	cancelled bool
	fails     error
}

func (s *sink) ID() string    { return "x" }
func (s *sink) Cancel() error { s.cancelled = true; return nil }
func (s *sink) Close() error  { return nil }
func (s *sink) Write(b []byte) (int, error) {
	if s.fails != nil {
		return 0, s.fails
	}
	return s.Buffer.Write(b)
}

// G5: a snapshot and what comes after it make the same state as the whole log.
func TestFSM_SnapshotAndRestore(t *testing.T) {
	a, b := newTestFSM(t, nil), newTestFSM(t, nil)
	a.Apply(entry(1, 1, acquireCmd("a", "x"), acquireCmd("b", "y")))
	snap, err := a.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	a.Apply(entry(2, 1, acquireCmd("c", "z"))) // must not get into the snapshot
	var s sink
	if err := snap.Persist(&s); err != nil {
		t.Fatal(err)
	}
	snap.Release()
	if err := b.Restore(io.NopCloser(bytes.NewReader(s.Bytes()))); err != nil {
		t.Fatal(err)
	}
	if got := b.machine.Index(); got != 1 {
		t.Errorf("restored at index %d, want 1", got)
	}
	b.Apply(entry(2, 1, acquireCmd("c", "z")))
	if a.machine.Hash() != b.machine.Hash() {
		t.Error("the states differ")
	}
}

// Case 25.
func TestFSM_DamagedSnapshotIsRefusedWhole(t *testing.T) {
	a, b := newTestFSM(t, nil), newTestFSM(t, nil)
	a.Apply(entry(1, 1, acquireCmd("a", "x")))
	b.Apply(entry(1, 1, acquireCmd("b", "y")))
	snap, _ := a.Snapshot()
	var s sink
	if err := snap.Persist(&s); err != nil {
		t.Fatal(err)
	}
	before := b.machine.Hash()
	for _, cut := range []int{0, 1, s.Len() / 2, s.Len() - 1} {
		if err := b.Restore(io.NopCloser(bytes.NewReader(s.Bytes()[:cut]))); err == nil {
			t.Errorf("the first %d of %d bytes were taken for a snapshot", cut, s.Len())
		}
	}
	if b.machine.Hash() != before {
		t.Error("the state changed")
	}
}

func TestFSM_SnapshotThatCannotBeWrittenIsCancelled(t *testing.T) {
	f := newTestFSM(t, nil)
	f.Apply(entry(1, 1, acquireCmd("a", "x")))
	snap, err := f.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	full := errors.New("no space left")
	s := &sink{fails: full}
	if err := snap.Persist(s); !errors.Is(err, full) || !s.cancelled {
		t.Errorf("persist: %v, cancelled %v", err, s.cancelled)
	}
}

func TestFSM_Position(t *testing.T) {
	f := newTestFSM(t, nil)
	index, moved := f.position()
	if index != 0 {
		t.Errorf("at %d before any entry", index)
	}
	select {
	case <-moved:
		t.Error("moved before any entry")
	default:
	}
	f.Apply(entry(7, 1, state.Command{Kind: state.KindEpoch}))
	<-moved
	if index, _ := f.position(); index != 7 {
		t.Errorf("at %d, want 7", index)
	}
}

func TestFSM_EventsTellWhatWasApplied(t *testing.T) {
	f := newTestFSM(t, nil)
	f.Apply(entry(1, 1, acquireCmd("a", "x"), acquireCmd("a", "x"), acquireCmd("a", "y")))
	f.Apply(entry(2, 1, state.Command{Kind: state.KindPut, Name: "a", Token: 1, Data: []byte("d")}))
	f.Apply(entry(3, 1, state.Command{Kind: state.KindRelease, Name: "a", Owner: "x", Token: 1}))
	f.Apply(entry(4, 1, acquireCmd("a", "y"), state.Command{Kind: state.KindBreak, Name: "a"}))
	f.Apply(entry(5, 1, acquireCmd("a", "z")))
	l, _ := f.machine.Get("a")
	f.Apply(entry(6, 1, state.Command{Kind: state.KindExpire, Ends: []state.End{{Name: "a", Token: l.Token, Revision: l.Revision}}}))
	f.Apply(entry(7, 1, state.Command{Kind: state.KindExpire, Ends: []state.End{{Name: "a", Token: l.Token, Revision: l.Revision}}}))
	events, index, _ := f.since("", 0, true)
	want := []struct {
		index uint64
		kind  lease.EventKind
		owner string
	}{
		{1, lease.EventGranted, "x"}, {1, lease.EventExtended, "x"}, {2, lease.EventData, "x"}, {3, lease.EventReleased, "x"},
		{4, lease.EventGranted, "y"}, {4, lease.EventBroken, "y"}, {5, lease.EventGranted, "z"}, {6, lease.EventExpired, "z"},
	}
	if len(events) != len(want) || index != 7 {
		t.Fatalf("%d events up to %d, want %d up to 7: %+v", len(events), index, len(want), events)
	}
	for i, e := range events {
		if e.Index != want[i].index || e.Kind != want[i].kind || e.Record.Owner != want[i].owner {
			t.Errorf("event %d is %d %s of %q, want %+v", i, e.Index, e.Kind, e.Record.Owner, want[i])
		}
	}
	for token, reason := range map[uint64]lease.Reason{1: lease.ReasonReleased, 2: lease.ReasonBroken, 3: lease.ReasonExpired} {
		if got, ok := f.events.ended(token); !ok || got != reason {
			t.Errorf("token %d ended as %q, want %q", token, got, reason)
		}
	}
}
