package raftlease

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/goleak"
)

// patience bounds the wait for what must happen, on a machine of any speed.
const patience = 60 * time.Second

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testCluster is a cluster on loopback with real disks and sockets.
type testCluster struct {
	t     testing.TB
	dir   string
	peers map[string]string
	nodes map[string]*Node // those that are open
}

// openCluster opens nodes with these ids and waits until all are ready.
func openCluster(t testing.TB, ids ...string) *testCluster {
	t.Helper()
	c := prepare(t, ids...)
	for _, id := range ids {
		c.start(id)
	}
	c.ready()
	return c
}

// prepare makes a cluster whose nodes are not started yet.
func prepare(t testing.TB, ids ...string) *testCluster {
	t.Helper()
	c := &testCluster{t: t, dir: t.TempDir(), peers: map[string]string{}, nodes: map[string]*Node{}}
	for _, id := range ids {
		c.peers[id] = freeAddr(t)
	}
	t.Cleanup(func() {
		for _, n := range c.nodes {
			n.Close()
		}
	})
	return c
}

// start opens a node without waiting for the cluster.
func (c *testCluster) start(id string) *Node {
	c.t.Helper()
	n, err := c.open(id)
	if err != nil {
		c.t.Fatal(err)
	}
	c.nodes[id] = n
	return n
}

func (c *testCluster) open(id string) (*Node, error) {
	return Open(c.config(id))
}

func (c *testCluster) config(id string) Config {
	return Config{ID: id, Dir: filepath.Join(c.dir, id), Listen: c.peers[id], Peers: c.peers, Logger: testLogger(c.t)}
}

// ready waits until every open node knows the leader.
func (c *testCluster) ready() {
	c.t.Helper()
	ctx := testContext(c.t)
	for id, n := range c.nodes {
		if err := n.Ready(ctx); err != nil {
			c.t.Fatalf("node %s: %v", id, err)
		}
	}
}

// leader waits for a node that serves as leader.
func (c *testCluster) leader() *Node {
	c.t.Helper()
	var found *Node
	c.eventually("a node leads", func() bool {
		for _, n := range c.nodes {
			if m, _ := n.current(); m != nil && m.serving() != nil {
				found = n
				return true
			}
		}
		return false
	})
	return found
}

// follower returns some open node that does not lead.
func (c *testCluster) follower() *Node {
	c.t.Helper()
	lead := c.leader()
	for _, n := range c.nodes {
		if n != lead {
			return n
		}
	}
	c.t.Fatal("there is no follower")
	return nil
}

// close stops a node as an operator would.
func (c *testCluster) close(n *Node) {
	c.t.Helper()
	delete(c.nodes, n.ID())
	if err := n.Close(); err != nil {
		c.t.Errorf("close node %s: %v", n.ID(), err)
	}
}

func (c *testCluster) eventually(what string, ok func() bool) {
	c.t.Helper()
	eventually(c.t, what, ok)
}

// eventually waits for a condition.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	ctx := testContext(t)
	for !ok() {
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
			t.Fatalf("waited %v and it did not happen: %s", patience, what)
		}
	}
}

func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

func freeAddr(t testing.TB) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
}

// testLogger logs only when asked to, because a cluster says a lot.
func testLogger(t testing.TB) hclog.Logger {
	if os.Getenv("RAFTLEASE_TEST_LOG") == "" {
		return hclog.NewNullLogger()
	}
	return hclog.New(&hclog.LoggerOptions{Name: fmt.Sprintf("%.20s", t.Name()), Level: hclog.Debug})
}

func contextWithTimeout(d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), d)
}
