package raftstore

import (
	"errors"
	"io"
	"sync"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

var errDisk = errors.New("input/output error")

// faulty is raft's stores with a disk that fails or hangs on purpose.
type faulty struct {
	raft.LogStore
	raft.StableStore

	mu       sync.Mutex
	failKey  string          // writes of this key fail
	failLogs error           // writes of the log fail
	hang     <-chan struct{} // writes of the log wait for it
	writes   []string        // the keys written, and "log"
	onWrite  func(key string)
}

func (f *faulty) wrote(key string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.onWrite != nil {
		f.onWrite(key)
	}
	f.writes = append(f.writes, key)
	if key == f.failKey {
		return errDisk
	}
	return nil
}

func (f *faulty) Set(key, val []byte) error {
	if err := f.wrote(string(key)); err != nil {
		return err
	}
	return f.StableStore.Set(key, val)
}

func (f *faulty) SetUint64(key []byte, val uint64) error {
	if err := f.wrote(string(key)); err != nil {
		return err
	}
	return f.StableStore.SetUint64(key, val)
}

func (f *faulty) StoreLogs(logs []*raft.Log) error {
	if err := f.disk(); err != nil {
		return err
	}
	return f.LogStore.StoreLogs(logs)
}

func (f *faulty) DeleteRange(first, last uint64) error {
	if err := f.disk(); err != nil {
		return err
	}
	return f.LogStore.DeleteRange(first, last)
}

func (f *faulty) disk() error {
	f.mu.Lock()
	hang, err := f.hang, f.failLogs
	f.writes = append(f.writes, "log")
	f.mu.Unlock()
	if hang != nil {
		<-hang
	}
	return err
}

func (f *faulty) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.writes)
}

func inMemory() *faulty {
	m := raft.NewInmemStore()
	return &faulty{LogStore: m, StableStore: m}
}

// onDisk opens the stores of dir without a Store around them.
func onDisk(t testing.TB, dir string) (*faulty, raft.SnapshotStore, io.Closer) {
	t.Helper()
	logs, stable, snaps, c, err := Directory(dir).Open(hclog.NewNullLogger())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return &faulty{LogStore: logs, StableStore: stable}, snaps, c
}

func mustOpen(t testing.TB, d Disk, node string) *Store {
	t.Helper()
	s, err := Open(d, Options{Node: node})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func mustClose(t testing.TB, c io.Closer) {
	t.Helper()
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
}

func mustStable(t testing.TB, inner raft.StableStore) *Stable {
	t.Helper()
	s, err := NewStable(inner)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
