package raftlease

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/raftlease/raftlease/internal/foundation"
	"github.com/raftlease/raftlease/internal/raftstore"
	"github.com/raftlease/raftlease/lease"
)

// faultyDisk is a data directory whose log can be made to hang or to fail.
type faultyDisk struct {
	raftstore.Directory
	hang atomic.Pointer[chan struct{}] // writes wait for it
	fail atomic.Pointer[error]
}

// Open implements raftstore.Disk.
func (d *faultyDisk) Open(l hclog.Logger) (raft.LogStore, raft.StableStore, raft.SnapshotStore, io.Closer, error) {
	logs, stable, snaps, c, err := d.Directory.Open(l)
	return faultyLog{logs, d}, stable, snaps, c, err
}

type faultyLog struct {
	raft.LogStore
	d *faultyDisk
}

func (l faultyLog) StoreLog(log *raft.Log) error { return l.StoreLogs([]*raft.Log{log}) }

func (l faultyLog) StoreLogs(logs []*raft.Log) error {
	if hang := l.d.hang.Load(); hang != nil {
		<-*hang
	}
	if err := l.d.fail.Load(); err != nil {
		return *err
	}
	return l.LogStore.StoreLogs(logs)
}

// Case 28, G5: the leader's disk hangs or fails. It stops leading and closes, the
// others go on, and nothing acknowledged is lost.
func TestNode_LeaderWithABadDisk(t *testing.T) {
	for _, what := range []string{"hangs", "fails"} {
		t.Run("that "+what, func(t *testing.T) {
			c := prepare(t, "a", "b", "c")
			disks := map[*Node]*faultyDisk{}
			for id := range c.peers {
				cfg := c.config(id)
				cfg.DiskTimeout = 2 * time.Second
				d := &faultyDisk{Directory: raftstore.Directory(filepath.Join(c.dir, id))}
				on := foundation.Machine("")
				on.Disk = d
				n, err := OpenOn(cfg, on)
				if err != nil {
					t.Fatal(err)
				}
				c.nodes[id], disks[n] = n, d
			}
			c.ready()
			ctx := testContext(t)
			n := c.leader()
			held := acquire(t, n, "held", "somebody")
			var other *Node
			for id := range c.nodes {
				if c.nodes[id] != n {
					other = c.nodes[id]
				}
			}
			hang := make(chan struct{})
			t.Cleanup(func() { close(hang) })
			if what == "hangs" {
				disks[n].hang.Store(&hang)
			} else {
				full := errors.New("no space left on device")
				disks[n].fail.Store(&full)
			}
			delete(c.nodes, n.ID())
			start := time.Now()
			g, err := other.Acquire(ctx, "next", "owner", ttl)
			if err != nil {
				t.Fatalf("acquire while the leader's disk %s: %v", what, err)
			}
			t.Logf("the others went on after %v", time.Since(start).Round(time.Millisecond))
			if g.Token <= held.Token {
				t.Errorf("G2: token %d after %d", g.Token, held.Token)
			}
			stopped(t, n, "disk failed")
			if r, err := other.Get(ctx, "held"); err != nil || r.Token != held.Token {
				t.Errorf("G5: after the disk failed: %+v, %v", r, err)
			}
		})
	}
}

// A follower's bad disk stops that follower and nobody else.
func TestNode_FollowerWithABadDisk(t *testing.T) {
	c := openCluster(t, "a", "b")
	d := &faultyDisk{Directory: raftstore.Directory(filepath.Join(c.dir, "c"))}
	on := foundation.Machine("")
	on.Disk = d
	c.peers["c"] = freeAddr(t)
	n, err := OpenOn(Config{ID: "c", Dir: "c", Listen: c.peers["c"], Join: c.leader().Addr(), DiskTimeout: time.Second}, on)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Close() })
	c.eventually("the new node has a vote", func() bool { return isVoter(c.leader(), "c") })
	full := errors.New("no space left on device")
	d.fail.Store(&full)
	for i := range 3 {
		acquire(t, c.leader(), fmt.Sprint("job ", i), "owner")
	}
	stopped(t, n, "disk failed", "no space left")
	if err := c.leader().RemoveMember(testContext(t), "c"); err != nil {
		t.Error(err)
	}
	if _, err := c.leader().Acquire(testContext(t), "last", "owner", ttl); errors.Is(err, lease.ErrClosed) {
		t.Error(err)
	}
}
