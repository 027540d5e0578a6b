package client_test

import (
	"testing"

	"github.com/raftlease/raftlease/client"
	"github.com/raftlease/raftlease/lease"
	"github.com/raftlease/raftlease/lease/leasetest"
)

func TestClient_Contract(t *testing.T) {
	leasetest.Suite{
		Open: func(t testing.TB) lease.Store {
			return dial(t, client.Config{}, start(t, newStore(t)).addr)
		},
		Closes: true,
	}.Run(t)
}

// Clients of different members, each with a dead one before its own.
func TestClient_ContractOverTwoMembers(t *testing.T) {
	store := newStore(t)
	a, b := start(t, store), start(t, store)
	leasetest.Suite{
		Open: func(t testing.TB) lease.Store { return dial(t, client.Config{}, dead(t), a.addr) },
		Others: func(t testing.TB, _ lease.Store) []lease.Store {
			return []lease.Store{dial(t, client.Config{}, dead(t), b.addr), dial(t, client.Config{}, b.addr, a.addr)}
		},
	}.Run(t)
}
