package memstore_test

import (
	"testing"

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
