package sqltest

import (
	"testing"
	"time"

	"github.com/raftlease/raftlease/lease"
	"github.com/raftlease/raftlease/lease/leasetest"
	"github.com/raftlease/raftlease/sqlstore"
)

func TestStore_Contract(t *testing.T) {
	onEach(t, func(t *testing.T, d database) { contract(d, sqlstore.Config{}).Run(t) })
}

// Short leases expire more often in the same time.
func TestStore_ContractWithShortLeases(t *testing.T) {
	onEach(t, func(t *testing.T, d database) {
		contract(d, sqlstore.Config{Limits: lease.Limits{MinTTL: 200 * time.Millisecond}}).Run(t)
	})
}

// contract is the suite on two handles of one table, as two processes have.
// What a store keeps is in the database, so re-opening is another handle.
func contract(d database, c sqlstore.Config) leasetest.Suite {
	another := func(t testing.TB) lease.Store { return d.on(t, d.again(t), c) }
	return leasetest.Suite{
		MinTTL: c.Limits.MinTTL,
		Open:   another,
		Others: func(t testing.TB, _ lease.Store) []lease.Store { return []lease.Store{another(t)} },
		Reopen: func(t testing.TB, _ lease.Store) lease.Store { return another(t) },
	}
}
