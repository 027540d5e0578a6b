package raftstore

import (
	"errors"
	"testing"

	"github.com/hashicorp/raft"
)

// voteFor stores a vote as raft does.
func voteFor(s raft.StableStore, term uint64, candidate string) error {
	if err := s.SetUint64([]byte(keyLastVoteTerm), term); err != nil {
		return err
	}
	return s.Set([]byte(keyLastVoteCand), []byte(candidate))
}

// checkVote checks the vote as raft reads it.
func checkVote(t testing.TB, s raft.StableStore, term uint64, candidate string) {
	t.Helper()
	got, err := s.GetUint64([]byte(keyLastVoteTerm))
	cand, err2 := s.Get([]byte(keyLastVoteCand))
	if err != nil || err2 != nil || got != term || string(cand) != candidate {
		t.Errorf("vote: got term %d for %q (%v, %v), want term %d for %q", got, cand, err, err2, term, candidate)
	}
}

func TestStable_VoteIsReadBackAfterReopen(t *testing.T) {
	dir := t.TempDir()
	inner, _, c := onDisk(t, dir)
	s := mustStable(t, inner)
	checkVote(t, s, 0, "")
	for term, candidate := range []string{1: "b", 2: "c"} {
		if candidate == "" {
			continue
		}
		if err := voteFor(s, uint64(term), candidate); err != nil {
			t.Fatal(err)
		}
		checkVote(t, s, uint64(term), candidate)
	}
	mustClose(t, c)
	inner, _, _ = onDisk(t, dir)
	checkVote(t, mustStable(t, inner), 2, "c")
}

// raft stores a vote by two calls. A crash between them leaves the earlier vote
// whole: never the new term with the old candidate (raft persistVote).
func TestStable_CrashBetweenTheTwoWritesLeavesTheEarlierVote(t *testing.T) {
	dir := t.TempDir()
	inner, _, c := onDisk(t, dir)
	s := mustStable(t, inner)
	if err := voteFor(s, 3, "b"); err != nil {
		t.Fatal(err)
	}
	if err := s.SetUint64([]byte(keyLastVoteTerm), 4); err != nil {
		t.Fatal(err)
	}
	checkVote(t, s, 3, "b")
	mustClose(t, c)
	inner, _, _ = onDisk(t, dir)
	checkVote(t, mustStable(t, inner), 3, "b")
}

func TestStable_FailedVoteIsReportedAndNotStored(t *testing.T) {
	inner := inMemory()
	s := mustStable(t, inner)
	if err := voteFor(s, 3, "b"); err != nil {
		t.Fatal(err)
	}
	inner.failKey = keyVote
	if err := voteFor(s, 4, "c"); !errors.Is(err, errDisk) {
		t.Errorf("vote: got %v, want %v", err, errDisk)
	}
	checkVote(t, s, 3, "b")
	inner.failKey = ""
	if err := s.Set([]byte(keyLastVoteCand), []byte("d")); err == nil {
		t.Error("a candidate without its term: got nil, want an error")
	}
	checkVote(t, s, 3, "b")
	if err := voteFor(s, 4, "c"); err != nil {
		t.Fatal(err)
	}
	checkVote(t, s, 4, "c")
}

// A confirm round must not read an older promise once a vote may be answered, so
// it is raised before the write.
func TestStable_PromiseIsRaisedBeforeTheWrite(t *testing.T) {
	inner := inMemory()
	s := mustStable(t, inner)
	var seen []uint64
	inner.onWrite = func(string) { seen = append(seen, s.Promised()) }
	if err := s.SetUint64([]byte(keyCurrentTerm), 5); err != nil {
		t.Fatal(err)
	}
	if err := voteFor(s, 6, "b"); err != nil {
		t.Fatal(err)
	}
	if len(seen) != 2 || seen[0] != 5 || seen[1] != 6 {
		t.Errorf("promised at the writes: got %v, want [5 6]", seen)
	}
	inner.onWrite = nil
	inner.failKey = keyCurrentTerm
	if err := s.SetUint64([]byte(keyCurrentTerm), 7); err == nil || s.Promised() != 7 {
		t.Errorf("a failed write: got %v and promised %d, want an error and 7", err, s.Promised())
	}
	if err := s.SetUint64([]byte(keyLastVoteTerm), 8); err != nil || s.Promised() != 8 {
		t.Errorf("a vote begun: got %v and promised %d, want 8", err, s.Promised())
	}
}

// Also when a term goes backwards in raft (upstream issue 695).
func TestStable_PromiseNeverFallsAlsoAfterReopen(t *testing.T) {
	for name, fall := range map[string]func(raft.StableStore) error{
		"term falls": func(s raft.StableStore) error { return s.SetUint64([]byte(keyCurrentTerm), 4) },
		"vote falls": func(s raft.StableStore) error { return voteFor(s, 4, "b") },
		"both fall": func(s raft.StableStore) error {
			return errors.Join(s.SetUint64([]byte(keyCurrentTerm), 4), voteFor(s, 4, "b"))
		},
		"other value": func(s raft.StableStore) error { return s.SetUint64([]byte("other"), 1) },
		"none":        func(raft.StableStore) error { return nil },
	} {
		for first, rise := range map[string]func(raft.StableStore) error{
			"term": func(s raft.StableStore) error { return s.SetUint64([]byte(keyCurrentTerm), 9) },
			"vote": func(s raft.StableStore) error { return voteFor(s, 9, "c") },
		} {
			t.Run(first+"/"+name, func(t *testing.T) {
				dir := t.TempDir()
				inner, _, c := onDisk(t, dir)
				s := mustStable(t, inner)
				if err := errors.Join(rise(s), fall(s)); err != nil {
					t.Fatal(err)
				}
				if got := s.Promised(); got != 9 {
					t.Errorf("promised: got %d, want 9", got)
				}
				mustClose(t, c)
				inner, _, _ = onDisk(t, dir)
				if got := mustStable(t, inner).Promised(); got != 9 {
					t.Errorf("promised after reopen: got %d, want 9", got)
				}
			})
		}
	}
}

// A term that goes backwards is not written before the promise it would hide.
func TestStable_FallingTermWaitsForThePromise(t *testing.T) {
	inner := inMemory()
	s := mustStable(t, inner)
	if err := s.SetUint64([]byte(keyCurrentTerm), 9); err != nil {
		t.Fatal(err)
	}
	inner.failKey = keyPromised
	if err := s.SetUint64([]byte(keyCurrentTerm), 4); !errors.Is(err, errDisk) {
		t.Errorf("falling term: got %v, want %v", err, errDisk)
	}
	if got := mustStable(t, inner).Promised(); got != 9 {
		t.Errorf("promised after reopen: got %d, want 9", got)
	}
}

func TestStable_OrdinaryWritesCostOneWrite(t *testing.T) {
	inner := inMemory()
	s := mustStable(t, inner)
	for term := range uint64(5) {
		if err := errors.Join(s.SetUint64([]byte(keyCurrentTerm), term+1), voteFor(s, term+1, "b")); err != nil {
			t.Fatal(err)
		}
	}
	if got := inner.count(); got != 10 {
		t.Errorf("writes: got %d for 5 terms and votes, want 10: %v", got, inner.writes)
	}
}

func TestStable_DamagedVoteIsRefused(t *testing.T) {
	inner := inMemory()
	if err := inner.StableStore.Set([]byte(keyVote), []byte("short")); err != nil {
		t.Fatal(err)
	}
	if _, err := NewStable(inner); err == nil {
		t.Error("got nil, want an error")
	}
}

func TestStable_OtherValuesPass(t *testing.T) {
	s := mustStable(t, inMemory())
	if err := errors.Join(s.Set([]byte("k"), []byte("v")), s.SetUint64([]byte("n"), 7)); err != nil {
		t.Fatal(err)
	}
	v, err := s.Get([]byte("k"))
	n, err2 := s.GetUint64([]byte("n"))
	if err != nil || err2 != nil || string(v) != "v" || n != 7 || s.Promised() != 0 {
		t.Errorf("got %q, %d (%v, %v) and promised %d, want v, 7 and 0", v, n, err, err2, s.Promised())
	}
}
