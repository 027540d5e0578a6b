package raftlease

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/raftlease/raftlease/internal/raftstore"
	"github.com/raftlease/raftlease/lease"
)

// refused opens a node that must not open, and checks what the error says.
func refused(t testing.TB, cfg Config, want ...string) {
	t.Helper()
	n, err := Open(cfg)
	if err == nil {
		n.Close()
		t.Fatalf("node %s opened, want an error with %q", cfg.ID, want)
	}
	for _, w := range want {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("error %q\nlacks %q", err, w)
		}
	}
}

// stopped waits until a node has stopped by itself, and checks why.
func stopped(t testing.TB, n *Node, want ...string) {
	t.Helper()
	select {
	case <-n.Done():
	case <-testContext(t).Done():
		t.Fatalf("node %s has not stopped; it waits: %s", n.ID(), n.waiting())
	}
	for _, w := range want {
		if n.Err() == nil || !strings.Contains(n.Err().Error(), w) {
			t.Errorf("node %s stopped because of %v\nwhich lacks %q", n.ID(), n.Err(), w)
		}
	}
	if _, err := n.Acquire(testContext(t), "job", "owner", ttl); !errors.Is(err, lease.ErrClosed) {
		t.Errorf("acquire at a node that stopped: %v, want %v", err, lease.ErrClosed)
	}
}

func TestNode_FormsOnceAllPeersAreThere(t *testing.T) {
	c := prepare(t, "a", "b", "c")
	a := c.start("a")
	c.start("b")
	c.eventually("a knows whom it waits for", func() bool { return strings.Contains(a.waiting(), "waiting for c at "+c.peers["c"]) })
	if s := a.Status(); s.State != stateForming || s.Cluster != "" || !strings.Contains(s.Waiting, "c at") {
		t.Errorf("status %+v", s)
	}
	ctx, cancel := contextWithTimeout(50 * time.Millisecond)
	defer cancel()
	if _, err := a.Acquire(ctx, "job", "owner", ttl); !errors.Is(err, lease.ErrUnavailable) || !strings.Contains(err.Error(), "waiting for c") {
		t.Errorf("acquire before the cluster formed: %v", err)
	}
	c.start("c")
	c.ready()
	for _, n := range c.nodes {
		if got := n.Status(); got.Cluster != a.Status().Cluster || len(got.Members) != 3 {
			t.Errorf("node %s: %+v", n.ID(), got)
		}
	}
}

// A founder that missed the forming finds its own disk in what the others say.
func TestNode_FounderComesLate(t *testing.T) {
	c := prepare(t, "a", "b", "c")
	for _, id := range []string{"a", "b", "c"} {
		c.start(id)
	}
	c.ready()
	// c's disk as it was before it entered the cluster.
	n := c.nodes["c"]
	c.close(n)
	store, err := raftstore.Open(raftstore.Directory(filepath.Join(c.dir, "c")), raftstore.Options{Node: "c"})
	if err != nil {
		t.Fatal(err)
	}
	before := raftstore.Identity{Node: "c", Disk: store.Identity().Disk, Incarnation: 1}
	if err := errors.Join(store.Close(), os.RemoveAll(filepath.Join(c.dir, "c"))); err != nil {
		t.Fatal(err)
	}
	if store, err = raftstore.Open(raftstore.Directory(filepath.Join(c.dir, "c")), raftstore.Options{Node: "c"}); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(store.SetIdentity(before), store.Close()); err != nil {
		t.Fatal(err)
	}
	late := c.start("c")
	c.ready()
	c.eventually("the late founder has the log", func() bool { return late.Status().AppliedIndex > 0 })
}

// A crash in the middle of a bootstrap, after the term and before the log.
func TestNode_FormingIsFinishedAfterACrash(t *testing.T) {
	dir := t.TempDir()
	store, err := raftstore.Open(raftstore.Directory(dir), raftstore.Options{Node: "a"})
	if err != nil {
		t.Fatal(err)
	}
	id := store.Identity()
	id.Founders, id.Peers = map[string]string{"a": id.Disk}, map[string]string{"a": "127.0.0.1:1"}
	id.Cluster = clusterID(id.Founders)
	if err := errors.Join(store.SetIdentity(id), store.Stable.SetUint64([]byte("CurrentTerm"), 1), store.Close()); err != nil {
		t.Fatal(err)
	}
	n, err := Open(Config{ID: "a", Dir: dir, Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	acquire(t, n, "job", "owner")
	eventually(t, "the new address is known", func() bool { return n.Status().Members[0].Address == n.Addr() })
}

// Case 29: a wiped disk must never vote again.
func TestNode_WipedDiskIsRefused(t *testing.T) {
	c := openCluster(t, "a", "b", "c")
	n := c.follower()
	dir := filepath.Join(c.dir, n.ID())
	c.close(n)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	refused(t, c.config(n.ID()), "data directory is empty", "must not vote again", "cluster remove "+n.ID(), "Join")

	// What it says works.
	if err := c.leader().RemoveMember(testContext(t), n.ID()); err != nil {
		t.Fatal(err)
	}
	cfg := c.config(n.ID())
	cfg.Peers, cfg.Join = nil, c.leader().Addr()
	again, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	c.nodes[n.ID()] = again
	c.eventually("it is a voter again", func() bool { return isVoter(c.leader(), n.ID()) })
	acquire(t, again, "job", "owner")
}

func isVoter(n *Node, id string) bool {
	for _, m := range n.Status().Members {
		if m.ID == id {
			return m.Voter
		}
	}
	return false
}

// The same with Join in place of Peers, while it is still a member.
func TestNode_WipedDiskIsRefusedByJoinToo(t *testing.T) {
	c := openCluster(t, "a", "b", "c")
	n := c.follower()
	c.close(n)
	if err := os.RemoveAll(filepath.Join(c.dir, n.ID())); err != nil {
		t.Fatal(err)
	}
	cfg := c.config(n.ID())
	cfg.Peers, cfg.Join = nil, c.leader().Addr()
	refused(t, cfg, "data directory is empty", "must not vote again")
}

// G8: what cannot work is said at once, with what to do.
func TestOpen_Refuses(t *testing.T) {
	valid := func(t testing.TB) Config { return Config{ID: "a", Dir: t.TempDir(), Listen: "127.0.0.1:0"} }

	t.Run("every bad field at once", func(t *testing.T) {
		refused(t, Config{ID: "a b", Listen: "nowhere", Join: "x", DiskTimeout: -1, Limits: lease.Limits{MinTTL: 5, MaxTTL: 1}},
			"ID", "Dir", "Listen", "Join", "DiskTimeout", "Limits")
	})
	t.Run("a port in use", func(t *testing.T) {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer ln.Close()
		cfg := valid(t)
		cfg.Listen = ln.Addr().String()
		refused(t, cfg, cfg.Listen, "address already in use", "choose another")
	})
	t.Run("a directory in use", func(t *testing.T) {
		cfg := valid(t)
		n, err := Open(cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer n.Close()
		refused(t, cfg, cfg.Dir, "in use by another process")
	})
	t.Run("a directory of another node", func(t *testing.T) {
		cfg := valid(t)
		n, err := Open(cfg)
		if err != nil {
			t.Fatal(err)
		}
		n.Close()
		cfg.ID = "b"
		refused(t, cfg, `belongs to node "a"`, `this node is "b"`)
	})
	t.Run("a directory that cannot be made", func(t *testing.T) {
		cfg := valid(t)
		file := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		cfg.Dir = filepath.Join(file, "dir")
		refused(t, cfg, cfg.Dir, "not a directory")
	})
	t.Run("a file that is no database", func(t *testing.T) {
		cfg := valid(t)
		if err := os.WriteFile(filepath.Join(cfg.Dir, "raft.db"), []byte(strings.Repeat("no database ", 4096)), 0o600); err != nil {
			t.Fatal(err)
		}
		refused(t, cfg, cfg.Dir, "raft.db")
	})
	t.Run("an address that others can reach", func(t *testing.T) {
		cfg := valid(t)
		cfg.Listen = "0.0.0.0:0"
		refused(t, cfg, "without encryption", "Insecure")
		cfg.Insecure = true
		refused(t, cfg, "Advertise", "wildcard")
	})
	t.Run("two addresses for one node", func(t *testing.T) {
		cfg := valid(t)
		cfg.Peers, cfg.Advertise = map[string]string{"a": "127.0.0.1:7001"}, "127.0.0.1:7002"
		refused(t, cfg, "Advertise", "127.0.0.1:7001")
	})
	t.Run("Join at its own address", func(t *testing.T) {
		cfg := valid(t)
		cfg.Listen = freeAddr(t)
		cfg.Join = cfg.Listen
		refused(t, cfg, "own id")
	})
}

func TestNode_PeersThatDoNotAgree(t *testing.T) {
	t.Run("lists that differ", func(t *testing.T) {
		c := prepare(t, "a", "b", "c")
		a := c.start("a")
		cfg := c.config("b")
		cfg.Peers = map[string]string{"a": c.peers["a"], "b": c.peers["b"]}
		refused(t, cfg, "field Peers differs", `node "a" has`, "c="+c.peers["c"])
		_ = a
	})
	t.Run("an address that is another node's", func(t *testing.T) {
		c := prepare(t, "a", "b", "c")
		c.start("a")
		cfg := c.config("b")
		cfg.Peers = map[string]string{"b": c.peers["b"], "c": c.peers["a"]}
		refused(t, cfg, `field Peers has node "c"`, `where node "a" answers`)
	})
	t.Run("the other notices later and stops", func(t *testing.T) {
		c := prepare(t, "a", "b", "c")
		a := c.start("a")
		n, err := Open(Config{ID: "b", Dir: t.TempDir(), Listen: c.peers["b"]}) // a cluster of its own
		if err != nil {
			t.Fatal(err)
		}
		defer n.Close()
		stopped(t, a, "in cluster", "already")
	})
}

// Two clusters never mix, even when an address of one comes to belong to the
// other.
func TestNode_AnotherClusterAtAnAddress(t *testing.T) {
	c := openCluster(t, "a", "b", "c")
	n := c.follower()
	c.close(n)
	stranger, err := Open(Config{ID: n.ID(), Dir: t.TempDir(), Listen: n.Addr()})
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	if err := stranger.Ready(testContext(t)); err != nil {
		t.Fatal(err)
	}
	acquire(t, c.leader(), "job", "one")
	if g := acquire(t, stranger, "job", "another"); g.Token != 1 {
		t.Errorf("token %d, want 1: it is a cluster of its own", g.Token)
	}
	if got := len(stranger.Status().Members); got != 1 {
		t.Errorf("the other cluster has %d members, want 1", got)
	}
}

func TestNode_FirstConfigurationIsTheSameEverywhere(t *testing.T) {
	c := openCluster(t, "a", "b", "c")
	first := map[string]string{}
	for id, n := range c.nodes {
		var l raft.Log
		if err := n.disk.Logs.GetLog(1, &l); err != nil {
			t.Fatal(err)
		}
		first[id] = string(l.Data)
	}
	if first["a"] != first["b"] || first["a"] != first["c"] {
		t.Errorf("the first entries differ: %q", first)
	}
}
