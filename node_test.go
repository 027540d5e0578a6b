package raftlease

import (
	"testing"
	"time"

	"github.com/raftlease/raftlease/lease"
	"github.com/raftlease/raftlease/lease/leasetest"
)

// openOne opens a cluster of one.
func openOne(t testing.TB, limits lease.Limits) *Node {
	t.Helper()
	n, err := Open(Config{ID: "a", Dir: t.TempDir(), Listen: "127.0.0.1:0", Limits: limits, Logger: testLogger(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Close() })
	if err := n.Ready(testContext(t)); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestNode_ContractAlone(t *testing.T) {
	leasetest.Suite{Open: func(t testing.TB) lease.Store { return openOne(t, lease.Limits{}) }, Closes: true}.Run(t)
}

func TestNode_ContractOnThree(t *testing.T) {
	c := openCluster(t, "a", "b", "c")
	leasetest.Suite{
		Open: func(testing.TB) lease.Store { return c.nodes["a"] },
		Others: func(testing.TB, lease.Store) []lease.Store {
			return []lease.Store{c.nodes["b"], c.nodes["c"]}
		},
	}.Run(t)
}

func TestNode_Works(t *testing.T) {
	n := openOne(t, lease.Limits{})
	g, err := n.Acquire(testContext(t), "report", n.Owner(), 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", g)
}
