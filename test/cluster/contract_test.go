package cluster

import (
	"testing"

	"github.com/raftlease/raftlease/lease"
	"github.com/raftlease/raftlease/lease/leasetest"
)

// The whole contract over clients of three node processes, each client with
// another node first.
func TestProcesses_ContractThroughClients(t *testing.T) {
	c := start(t, nil, "a", "b", "c")
	leasetest.Suite{
		Open: func(testing.TB) lease.Store { return c.client("a", "b") },
		Others: func(testing.TB, lease.Store) []lease.Store {
			return []lease.Store{c.client("b", "c"), c.client("c", "a")}
		},
		Patience: patience,
	}.Run(t)
}
