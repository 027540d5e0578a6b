// Package leasetest is the contract of a lease store as tests. Every store that
// claims to be a lease.Store passes them, so that one store can be swapped for
// another:
//
//	func TestContract(t *testing.T) {
//		leasetest.TestStore(t, func(t testing.TB) lease.Store {
//			s := memstore.New()
//			t.Cleanup(func() { s.Close() })
//			return s
//		})
//	}
//
// A store that is also a lease.Waiter, lease.Inspector, lease.DataStore or
// lease.Watcher is tested as such too. Every case carries the number of the
// promise it is about, G1 to G8.
//
// # What is promised
//
// A correct store passes on a machine of any speed: what has to happen is
// waited for, and that something happened too early is concluded only from
// readings that cannot be explained in another way. The store may be shared and
// need not be empty.
//
// # What is not promised
//
// The suite sees a store from outside while it is healthy. What a store does
// when its machine, disk or network fails, and when clocks jump, needs tests of
// its own.
package leasetest

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/raftlease/raftlease/lease"
)

// Suite says how to get the store under test. Only Open is needed.
type Suite struct {
	// Open returns a store and arranges with t.Cleanup for its end. It is
	// called once for all cases, and once more for each case that closes its
	// store (see Reopen and Closes).
	Open func(t testing.TB) lease.Store

	// Others returns more handles of the store that Open returned, such as the
	// other nodes of its cluster; calls of different owners are spread over all
	// of them. Nil means that there is one handle.
	Others func(t testing.TB, s lease.Store) []lease.Store

	// Reopen closes a store that Open returned and opens it again with what it
	// had kept. Nil means that the store keeps nothing, and the cases about
	// that are skipped.
	Reopen func(t testing.TB, s lease.Store) lease.Store

	// Closes says that every call of Open returns a store of its own, with a
	// method Close() error that ends it alone.
	Closes bool

	// MinTTL is the shortest ttl that the store allows; cases that wait for an
	// expiry use it. Defaults to lease.DefaultMin.
	MinTTL time.Duration

	// Patience bounds the wait for anything that must happen. Defaults to 30 s.
	Patience time.Duration
}

// TestStore runs the suite on the store that open returns.
func TestStore(t *testing.T, open func(t testing.TB) lease.Store) {
	t.Helper()
	Suite{Open: open}.Run(t)
}

// Run runs each case as a parallel subtest of t. All cases are under way at
// once, however few tests the go command runs in parallel: they spend most of
// their time waiting for leases to expire.
func (s Suite) Run(t *testing.T) {
	t.Helper()
	if s.Open == nil {
		panic("leasetest: Suite.Run: Open is nil")
	}
	f := s.fixture(t)
	for i, c := range cases() {
		t.Run(c.name, func(t *testing.T) {
			if missing := c.needs.missing(s, f.stores[0]); missing != "" {
				t.Skip(missing)
			}
			sub := &async{TB: t}
			done := make(chan struct{})
			go func() {
				defer close(done)
				c.run(f.env(sub, i))
			}()
			t.Parallel() // returns when this subtest's turn to report has come
			<-done
			if sub.skipped.Load() {
				t.SkipNow()
			}
		})
	}
}

// needs is what a case asks of a store beyond lease.Store.
type needs uint8

const (
	waiter needs = 1 << iota
	inspector
	dataStore
	watcher
	reopen
	closes
)

// missing names what s or st lacks of n, or is empty.
func (n needs) missing(s Suite, st lease.Store) string {
	_, waits := st.(lease.Waiter)
	_, inspects := st.(lease.Inspector)
	_, puts := st.(lease.DataStore)
	_, watches := st.(lease.Watcher)
	for _, need := range []struct {
		bit  needs
		have bool
		text string
	}{
		{waiter, waits, "the store is no lease.Waiter"},
		{inspector, inspects, "the store is no lease.Inspector"},
		{dataStore, puts, "the store is no lease.DataStore"},
		{watcher, watches, "the store is no lease.Watcher"},
		{reopen, s.Reopen != nil, "Suite.Reopen is nil"},
		{closes, s.Closes, "Suite.Closes is false"},
	} {
		if n&need.bit != 0 && !need.have {
			return need.text
		}
	}
	return ""
}

// fixture is what all cases of one run share.
type fixture struct {
	suite  Suite
	stores []lease.Store
	run    string // part of every name, so that runs on one store do not meet
}

func (s Suite) fixture(t testing.TB) *fixture {
	t.Helper()
	if s.MinTTL == 0 {
		s.MinTTL = lease.DefaultMin
	}
	if s.Patience == 0 {
		s.Patience = 30 * time.Second
	}
	var run [4]byte
	rand.Read(run[:])
	f := &fixture{suite: s, run: hex.EncodeToString(run[:])}
	f.stores = f.handles(t)
	return f
}

// handles returns the handles of a new store.
func (f *fixture) handles(t testing.TB) []lease.Store {
	t.Helper()
	st := f.suite.Open(t)
	if st == nil {
		t.Fatal("Open returned no store")
	}
	stores := []lease.Store{st}
	if f.suite.Others != nil {
		stores = append(stores, f.suite.Others(t, st)...)
	}
	return stores
}

func (f *fixture) env(t testing.TB, i int) *env {
	return &env{
		TB: t, fixture: f, stores: f.stores,
		prefix: fmt.Sprintf("%s/%02d/", f.run, i),
		short:  f.suite.MinTTL,
		long:   max(time.Minute, 2*f.suite.Patience, 4*f.suite.MinTTL),
	}
}

// errStopped is the cause with which the suite ends contexts.
var errStopped = errors.New("the test ended this call")
