package sqltest

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/raftlease/raftlease/lease"
	"github.com/raftlease/raftlease/sqlstore"
)

// G7: what a transaction writes after Check is written by the one holder, also
// when the lease runs out before the commit.
func TestStore_CheckKeepsOthersOut(t *testing.T) {
	onEach(t, func(t *testing.T, d database) {
		s := d.storeAs(t, sqlstore.Config{Limits: lease.Limits{MinTTL: shortTTL}})
		other := d.on(t, d.again(t), sqlstore.Config{})
		a := acquire(t, s, "job", "a", 4*shortTTL)
		tx := d.begin(t)
		if err := s.Check(bg, tx, a); err != nil {
			t.Fatal(err)
		}
		d.passed(t, "job")
		var committed atomic.Bool
		done := make(chan error, 1)
		var b lease.Grant
		go func() {
			var err error
			b, err = other.Acquire(bg, "job", "b", time.Minute)
			if err == nil && !committed.Load() {
				t.Error("b was granted the name before the transaction of a ended (G7)")
			}
			done <- err
		}()
		d.someoneWaits(t)
		committed.Store(true)
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		larger(t, b, a)
	})
}

// G7: Check refuses whatever is not the live grant.
func TestStore_CheckRefuses(t *testing.T) {
	onEach(t, func(t *testing.T, d database) {
		s := d.store(t)
		check := func(g lease.Grant) error {
			tx := d.begin(t)
			defer tx.Rollback()
			return s.Check(bg, tx, g)
		}
		never := lease.Grant{Name: "never", Owner: "a", Token: 1}
		isLost(t, "never held", check(never), never, lease.ReasonGone)

		a := acquire(t, s, "job", "a", time.Minute)
		for _, g := range []lease.Grant{
			{Name: "job", Owner: "b", Token: a.Token}, {Name: "job", Owner: "a", Token: a.Token + 1},
		} {
			isLost(t, "not the grant", check(g), g, lease.ReasonTaken)
		}
		if err := check(a); err != nil {
			t.Errorf("the live grant: %v", err)
		}
		d.timeIsUp(t, "job")
		isLost(t, "time is up", check(a), a, lease.ReasonExpired)
		release(t, s, a)
		isLost(t, "released", check(a), a, lease.ReasonReleased)
		acquire(t, s, "job", "b", time.Minute)
		isLost(t, "taken", check(a), a, lease.ReasonTaken)
	})
}

// On PostgreSQL a transaction that holds its lease by Check keeps no renewal
// waiting.
func TestStore_RenewDuringCheck(t *testing.T) {
	d := onPostgres(t)
	s := d.store(t)
	a := acquire(t, s, "job", "a", time.Minute)
	tx := d.begin(t)
	if err := s.Check(bg, tx, a); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Renew(bg, a, time.Minute); err != nil {
		t.Errorf("renew while a transaction of the holder is open: %v", err)
	}
	if err := s.Check(bg, tx, a); err != nil {
		t.Errorf("check again: %v", err)
	}
	if err := tx.Commit(); err != nil {
		t.Error(err)
	}
}
