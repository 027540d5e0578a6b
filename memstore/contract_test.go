package memstore_test

import (
	"testing"
	"time"

	"github.com/raftlease/raftlease/lease"
	"github.com/raftlease/raftlease/lease/leasetest"
	"github.com/raftlease/raftlease/memstore"
)

func TestStore_Contract(t *testing.T) {
	leasetest.Suite{
		Open: func(t testing.TB) lease.Store {
			s := memstore.New()
			t.Cleanup(func() { s.Close() })
			return s
		},
		Closes: true,
	}.Run(t)
}

// The shorter the leases, the more a slow machine gets in between.
func TestStore_ContractWithShortLeases(t *testing.T) {
	const shortest = 50 * time.Millisecond
	leasetest.Suite{
		MinTTL: shortest,
		Open: func(t testing.TB) lease.Store {
			s, err := memstore.Open(memstore.Config{Limits: lease.Limits{MinTTL: shortest}})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { s.Close() })
			return s
		},
	}.Run(t)
}
