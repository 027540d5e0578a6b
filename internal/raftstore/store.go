package raftstore

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

const (
	dbFile       = "raft.db"
	snapshotDir  = "snapshots" // raft.FileSnapshotStore's own name
	keepSnapshot = 2
	logCacheSize = 512
	lockTimeout  = 500 * time.Millisecond
	writeLimit   = 4 * time.Second
)

// Disk is the place a Store lives in. Directory is the one for real use; the
// simulation has its own.
type Disk interface {
	// Open takes the disk for this process and returns raft's stores on it.
	// They are closed by closing c.
	Open(logger hclog.Logger) (logs raft.LogStore, stable raft.StableStore, snaps raft.SnapshotStore, c io.Closer, err error)
	// String names the place in errors.
	String() string
}

// Store is an opened disk. Its methods are safe for concurrent use.
type Store struct {
	Logs      raft.LogStore // guarded and cached
	Stable    *Stable
	Snapshots raft.SnapshotStore

	disk   Disk
	closer io.Closer
	limit  time.Duration // of Close
	id     Identity
}

// Options for Open.
type Options struct {
	Node       string        // the node's id; a disk of another node is refused
	WriteLimit time.Duration // longest time one log write may take. Defaults to 4 s
	Failed     func(error)   // called once when the disk hung or failed; may be nil
	Logger     hclog.Logger  // Defaults to none
}

// Open takes the disk, checks whose it is and raises its incarnation. The disk
// of another node, a disk in use and a damaged one are refused; a refused disk
// is left as it was.
func Open(disk Disk, o Options) (*Store, error) {
	if o.Logger == nil {
		o.Logger = hclog.NewNullLogger()
	}
	if o.WriteLimit == 0 {
		o.WriteLimit = writeLimit
	}
	logs, inner, snaps, closer, err := disk.Open(o.Logger)
	if err != nil {
		return nil, err
	}
	s := &Store{Snapshots: snaps, disk: disk, closer: closer, limit: o.WriteLimit}
	if err := s.load(logs, inner, o); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", disk, err), closer.Close())
	}
	return s, nil
}

func (s *Store) load(logs raft.LogStore, inner raft.StableStore, o Options) error {
	id, found, err := loadIdentity(inner)
	if err != nil {
		return err
	}
	last, err := logs.LastIndex()
	if err != nil {
		return err
	}
	snaps, err := s.Snapshots.List()
	if err != nil {
		return err
	}
	switch {
	case !found && (last > 0 || len(snaps) > 0):
		return errors.New("it has a log or snapshots but no identity: it was not written by raftlease, or part of it was lost; " +
			"restore the whole directory, or remove this member from the cluster and rejoin it with an empty one")
	case found && id.Node != o.Node:
		return fmt.Errorf("it belongs to node %q, this node is %q: give each node a directory of its own", id.Node, o.Node)
	case !found:
		id = Identity{Node: o.Node, Disk: randomID()}
	}
	id.Incarnation++
	if s.Stable, err = NewStable(inner); err != nil {
		return err
	}
	guard := NewGuard(logs, o.WriteLimit, o.Failed)
	if s.Logs, err = raft.NewLogCache(logCacheSize, guard); err != nil {
		return err
	}
	return s.SetIdentity(id)
}

// Identity returns whose disk this is.
func (s *Store) Identity() Identity { return s.id.clone() }

// SetIdentity stores id durably. Not safe for concurrent use with itself or
// with Identity.
func (s *Store) SetIdentity(id Identity) error {
	if err := storeIdentity(s.Stable.inner, id); err != nil {
		return fmt.Errorf("store identity: %w", err)
	}
	s.id = id.clone()
	return nil
}

// HasState reports whether raft has ever run on this disk.
func (s *Store) HasState() (bool, error) {
	return raft.HasExistingState(s.Logs, s.Stable, s.Snapshots)
}

// Close gives the disk back. On a disk that hangs it returns ErrDisk after the
// write limit; the disk then stays taken until it answers or the process ends.
func (s *Store) Close() error {
	done := make(chan error, 1)
	go func() { done <- s.closer.Close() }()
	late := time.NewTimer(s.limit)
	defer late.Stop()
	select {
	case err := <-done:
		return err
	case <-late.C:
		return fmt.Errorf("close %s: %w: no answer within %v", s.disk, ErrDisk, s.limit)
	}
}

func randomID() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return hex.EncodeToString(b[:])
}

// Directory is a Disk in a directory of the file system. The file raft.db in it
// holds log, vote and identity, and is locked while a process has it open.
type Directory string

// String implements Disk.
func (d Directory) String() string { return "data directory " + string(d) }

// Open implements Disk.
func (d Directory) Open(logger hclog.Logger) (raft.LogStore, raft.StableStore, raft.SnapshotStore, io.Closer, error) {
	fail := func(err error) (raft.LogStore, raft.StableStore, raft.SnapshotStore, io.Closer, error) {
		return nil, nil, nil, nil, fmt.Errorf("open %s: %w", d, err)
	}
	if err := os.MkdirAll(string(d), 0o700); err != nil {
		return fail(err)
	}
	db, err := raftboltdb.New(raftboltdb.Options{
		Path: filepath.Join(string(d), dbFile),
		BoltOptions: &bbolt.Options{
			Timeout: lockTimeout,
			// A burst of appends and deletes otherwise leaves a long free list
			// that every later commit would write again.
			NoFreelistSync: true,
			FreelistType:   bbolt.FreelistMapType,
		},
	})
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return fail(errors.New("it is in use by another process: stop that one, or give this node a directory of its own"))
	case err != nil:
		return fail(fmt.Errorf("file %s: %w", dbFile, err))
	}
	snaps, err := raft.NewFileSnapshotStoreWithLogger(string(d), keepSnapshot, logger.Named("snapshot"))
	if err != nil {
		return fail(errors.Join(err, db.Close()))
	}
	return db, db, snaps, db, nil
}
