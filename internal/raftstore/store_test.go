package raftstore

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

func TestStore_IdentityIsKeptAndTheIncarnationRises(t *testing.T) {
	dir := Directory(filepath.Join(t.TempDir(), "not", "made", "yet"))
	var first Identity
	for start := range uint64(4) {
		s := mustOpen(t, dir, "n1")
		id := s.Identity()
		if start == 0 {
			first = id
			id.Cluster, id.Founders, id.Peers = "c", map[string]string{"n1": id.Disk}, map[string]string{"n1": "a:1"}
			if err := s.SetIdentity(id); err != nil {
				t.Fatal(err)
			}
			id.Founders["n1"] = "changed by the caller"
			s.Identity().Founders["n1"] = "changed by a reader"
			if got := s.Identity().Founders["n1"]; got != first.Disk {
				t.Errorf("founder: got %q, want %q: nobody changes what is stored", got, first.Disk)
			}
		} else if id.Cluster != "c" || id.Founders["n1"] != first.Disk || id.Peers["n1"] != "a:1" {
			t.Errorf("identity: got %+v, want what was stored", id)
		}
		if id.Node != "n1" || id.Disk != first.Disk || len(id.Disk) != 16 || id.Incarnation != start+1 {
			t.Errorf("identity: got %+v, want disk %q in incarnation %d", id, first.Disk, start+1)
		}
		mustClose(t, s)
	}
	other := mustOpen(t, Directory(t.TempDir()), "n1").Identity()
	if other.Disk == first.Disk || other.Session() == first.Session() {
		t.Errorf("two directories: got disk %q and session %q twice, want different ones", other.Disk, other.Session())
	}
}

// identityOf reads the identity of a directory that nobody has open.
func identityOf(t testing.TB, dir string) (Identity, bool) {
	t.Helper()
	inner, _, c := onDisk(t, dir)
	id, found, err := loadIdentity(inner)
	if err != nil {
		t.Fatal(err)
	}
	mustClose(t, c)
	return id, found
}

// refused checks that Open refuses d with a text that says these things.
func refused(t testing.TB, d Disk, node string, says ...string) {
	t.Helper()
	s, err := Open(d, Options{Node: node})
	if err == nil {
		mustClose(t, s)
		t.Fatalf("open %s: got nil, want an error that says %q", d, says)
	}
	for _, part := range append(says, d.String()) {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error: got %q, want %q in it", err, part)
		}
	}
}

// Case 10: a directory belongs to one node, and a refused one is left as it was.
func TestStore_DirectoryOfAnotherNodeIsRefused(t *testing.T) {
	dir := t.TempDir()
	mustClose(t, mustOpen(t, Directory(dir), "n1"))
	before, _ := identityOf(t, dir)
	refused(t, Directory(dir), "n2", `belongs to node "n1"`, `this node is "n2"`, "a directory of its own")
	if after, _ := identityOf(t, dir); after.Node != before.Node || after.Incarnation != before.Incarnation || after.Disk != before.Disk {
		t.Errorf("identity of the refused disk: got %+v, want %+v", after, before)
	}
	if s := mustOpen(t, Directory(dir), "n1"); s.Identity().Incarnation != before.Incarnation+1 {
		t.Errorf("incarnation: got %d, want %d", s.Identity().Incarnation, before.Incarnation+1)
	}
}

// Case 10: two handles of one directory, as two processes have.
func TestStore_DirectoryInUseIsRefused(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, Directory(dir), "n1")
	refused(t, Directory(dir), "n1", "in use by another process", "stop that one")
	mustClose(t, s)
	mustOpen(t, Directory(dir), "n1")
}

// A lost identity means a lost vote: such a disk must not vote again.
func TestStore_LogWithoutIdentityIsRefused(t *testing.T) {
	t.Run("log", func(t *testing.T) {
		dir := t.TempDir()
		inner, _, c := onDisk(t, dir)
		if err := inner.LogStore.StoreLogs([]*raft.Log{entry(1)}); err != nil {
			t.Fatal(err)
		}
		mustClose(t, c)
		refused(t, Directory(dir), "n1", "no identity", "rejoin")
		if _, found := identityOf(t, dir); found {
			t.Error("the refused disk has got an identity, want it left as it was")
		}
	})
	t.Run("snapshot", func(t *testing.T) {
		dir := t.TempDir()
		s := mustOpen(t, Directory(dir), "n1")
		_, trans := raft.NewInmemTransport("")
		sink, err := s.Snapshots.Create(1, 5, 2, raft.Configuration{}, 1, trans)
		if err != nil {
			t.Fatal(err)
		}
		if err := sink.Close(); err != nil {
			t.Fatal(err)
		}
		mustClose(t, s)
		if err := os.Remove(filepath.Join(dir, dbFile)); err != nil {
			t.Fatal(err)
		}
		refused(t, Directory(dir), "n1", "no identity", "rejoin")
	})
}

func TestStore_DamageIsRefused(t *testing.T) {
	for name, c := range map[string]struct{ key, value string }{
		"identity is no JSON": {keyIdentity, "{"},
		"identity is empty":   {keyIdentity, "{}"},
		"vote is cut off":     {keyVote, "123"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			mustClose(t, mustOpen(t, Directory(dir), "n1"))
			inner, _, closer := onDisk(t, dir)
			if err := inner.StableStore.Set([]byte(c.key), []byte(c.value)); err != nil {
				t.Fatal(err)
			}
			mustClose(t, closer)
			refused(t, Directory(dir), "n1", "damaged")
			inner, _, _ = onDisk(t, dir)
			if got, _ := inner.StableStore.Get([]byte(c.key)); string(got) != c.value {
				t.Errorf("value on the refused disk: got %q, want %q", got, c.value)
			}
			if c.key == keyVote {
				if id, _, err := loadIdentity(inner); err != nil || id.Incarnation != 1 {
					t.Errorf("incarnation on the refused disk: got %d (%v), want 1", id.Incarnation, err)
				}
			}
		})
	}
	t.Run("file is none of ours", func(t *testing.T) {
		dir := t.TempDir()
		text := []byte(strings.Repeat("not a database ", 5000))
		if err := os.WriteFile(filepath.Join(dir, dbFile), text, 0o600); err != nil {
			t.Fatal(err)
		}
		refused(t, Directory(dir), "n1", dbFile)
		if got, _ := os.ReadFile(filepath.Join(dir, dbFile)); string(got) != string(text) {
			t.Error("the refused file was changed")
		}
	})
}

// As good as a read-only file system, also for root: nothing can be made there.
func TestStore_DirectoryThatCannotBeMadeIsRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	refused(t, Directory(file), "n1", "not a directory")
	refused(t, Directory(filepath.Join(file, "below")), "n1", "not a directory")
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, snapshotDir), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	refused(t, Directory(dir), "n1", snapshotDir)
	if err := os.Remove(filepath.Join(dir, snapshotDir)); err != nil {
		t.Fatal(err)
	}
	mustOpen(t, Directory(dir), "n1") // the refusal has given its lock back
}

func TestStore_HasStateOnceRaftHasRun(t *testing.T) {
	s := mustOpen(t, Directory(t.TempDir()), "n1")
	if has, err := s.HasState(); has || err != nil {
		t.Errorf("new disk: got %v, %v, want false", has, err)
	}
	if err := s.Stable.SetUint64([]byte(keyCurrentTerm), 1); err != nil {
		t.Fatal(err)
	}
	if has, err := s.HasState(); !has || err != nil {
		t.Errorf("after a term: got %v, %v, want true", has, err)
	}
}

// memoryDisk is a Disk in memory.
type memoryDisk struct {
	*faulty
	close func() error
}

func (memoryDisk) String() string { return "memory" }

func (d memoryDisk) Open(hclog.Logger) (raft.LogStore, raft.StableStore, raft.SnapshotStore, io.Closer, error) {
	return d.faulty, d.faulty, raft.NewInmemSnapshotStore(), closer(d.close), nil
}

type closer func() error

func (c closer) Close() error { return c() }

// Case 28: the log of a Store is guarded, by default too.
func TestStore_LogIsGuarded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := memoryDisk{inMemory(), func() error { return nil }}
		told := make(chan error, 1)
		s, err := Open(disk, Options{Node: "n1", Failed: func(err error) { told <- err }})
		if err != nil {
			t.Fatal(err)
		}
		gate := make(chan struct{})
		defer close(gate)
		disk.hang = gate
		begin := time.Now()
		// raft's cache passes the text of the error on, and not the error.
		if err := s.Logs.StoreLog(entry(1)); err == nil || time.Since(begin) != writeLimit {
			t.Errorf("got %v after %v, want an error after %v", err, time.Since(begin), writeLimit)
		}
		if err := <-told; !errors.Is(err, ErrDisk) {
			t.Errorf("told %v, want %v", err, ErrDisk)
		}
	})
}

func TestStore_CloseGivesUpOnADiskThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		s, err := Open(memoryDisk{inMemory(), func() error { <-gate; return nil }}, Options{Node: "n1", WriteLimit: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		if err := s.Close(); !errors.Is(err, ErrDisk) || time.Since(begin) != time.Second {
			t.Errorf("got %v after %v, want %v after 1s", err, time.Since(begin), ErrDisk)
		}
		close(gate)
	})
}

// A disk that cannot store the identity is refused and given back.
func TestStore_IdentityThatCannotBeStoredIsRefused(t *testing.T) {
	disk, closed := inMemory(), 0
	disk.failKey = keyIdentity
	refused(t, memoryDisk{disk, func() error { closed++; return nil }}, "n1", "store identity", errDisk.Error())
	if closed != 1 {
		t.Errorf("closed: got %d times, want once", closed)
	}
}
