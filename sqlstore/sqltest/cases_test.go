package sqltest

import (
	"errors"
	"testing"
	"time"

	"github.com/raftlease/raftlease/lease"
	"github.com/raftlease/raftlease/sqlstore"
)

// Case 7, G2: a renewal never makes a record anew, and no token comes twice.
func TestStore_RecordIsGone(t *testing.T) {
	onEach(t, func(t *testing.T, d database) {
		s := d.store(t)
		var last lease.Grant
		for _, gone := range []string{"DELETE FROM " + d.table + " WHERE name = 'job'", "DELETE FROM " + d.table} {
			g := acquire(t, s, "job", "a", time.Minute)
			larger(t, g, last)
			d.do(t, gone)
			_, err := s.Renew(bg, g, time.Minute)
			isLost(t, "renew", err, g, lease.ReasonGone)
			isLost(t, "put", s.Put(bg, g, []byte("x")), g, lease.ReasonGone)
			release(t, s, g)
			if n := d.count(t, "SELECT count(*) FROM "+d.table); n != 0 {
				t.Errorf("%d records after a renewal, want none", n)
			}
			last = acquire(t, s, "job", "b", time.Minute)
			larger(t, last, g)
			release(t, s, last)
		}
	})
}

// Case 7: the last token is lost instead of the record.
func TestStore_LastTokenIsGone(t *testing.T) {
	onEach(t, func(t *testing.T, d database) {
		s := d.store(t)
		var first lease.Grant
		for range 5 {
			first = acquire(t, s, "job", "a", time.Minute)
			release(t, s, first)
		}
		d.do(t, "DELETE FROM "+d.tokens())
		_, err := s.Acquire(bg, "other", "a", time.Minute)
		if !errors.Is(err, lease.ErrUnavailable) {
			t.Errorf("acquire without a last token: error %v, want lease.ErrUnavailable", err)
		}
		if err := s.EnsureSchema(bg); err != nil {
			t.Fatal(err)
		}
		larger(t, acquire(t, s, "other", "a", time.Minute), first)
	})
}

// G2: a last token that is too small, as after a partial restore, does no harm
// to a name whose record is there.
func TestStore_LastTokenIsTooSmall(t *testing.T) {
	onEach(t, func(t *testing.T, d database) {
		s := d.store(t)
		g := acquire(t, s, "job", "a", time.Minute)
		d.do(t, "UPDATE "+d.table+" SET token = 1000, owner = '', expires = 0")
		d.do(t, "UPDATE "+d.tokens()+" SET token = 7")
		if next := acquire(t, s, "job", "a", time.Minute); next.Token <= 1000 || next.Token == g.Token {
			t.Errorf("token %d after 1000", next.Token)
		}
	})
}

// Case 21, G7: A freezes, B holds and dies, A wakes.
func TestStore_FrozenHolderWakes(t *testing.T) {
	onEach(t, func(t *testing.T, d database) {
		s := d.store(t)
		a := acquire(t, s, "job", "a", time.Minute)
		d.timeIsUp(t, "job")
		b := acquire(t, s, "job", "b", time.Minute)
		if err := s.Put(bg, b, []byte("by b")); err != nil {
			t.Fatal(err)
		}
		_, err := s.Renew(bg, a, time.Minute)
		isLost(t, "renew while b holds", err, a, lease.ReasonTaken)
		d.timeIsUp(t, "job")

		_, err = s.Renew(bg, a, time.Minute)
		isLost(t, "renew after b died", err, a, lease.ReasonGone)
		isLost(t, "put", s.Put(bg, a, []byte("by a")), a, lease.ReasonGone)
		tx := d.begin(t)
		isLost(t, "check", s.Check(bg, tx, a), a, lease.ReasonGone)
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		again := acquire(t, s, "job", "a", time.Minute)
		larger(t, again, b)
		r, err := s.Get(bg, "job")
		if err != nil {
			t.Fatal(err)
		}
		if string(r.Data) != "by b" || r.DataToken != b.Token {
			t.Errorf("data %q of token %d, want that of b, %d", r.Data, r.DataToken, b.Token)
		}
	})
}

// The reason of a loss is what the row still tells.
func TestStore_ReasonOfLoss(t *testing.T) {
	onEach(t, func(t *testing.T, d database) {
		s := d.store(t)
		g := acquire(t, s, "job", "a", time.Minute)
		d.timeIsUp(t, "job")
		_, err := s.Renew(bg, g, time.Minute)
		isLost(t, "renew after the time is up", err, g, lease.ReasonExpired)
		release(t, s, g)
		_, err = s.Renew(bg, g, time.Minute)
		isLost(t, "renew after release", err, g, lease.ReasonReleased)
	})
}

const shortTTL = 300 * time.Millisecond

// Case 23, G6: the statement of a call waits for a row that somebody has locked
// and not changed, until after the expiry. What the clock said before the wait
// must not count.
func TestStore_WaitsForTheRowPastTheExpiry(t *testing.T) {
	onEach(t, func(t *testing.T, d database) {
		s := d.storeAs(t, sqlstore.Config{Limits: lease.Limits{MinTTL: shortTTL}})
		for _, c := range []struct {
			name string
			call func(g lease.Grant) (lease.Grant, error)
			ok   func(t *testing.T, g, got lease.Grant, err error)
		}{
			{
				"a renewal is lost",
				func(g lease.Grant) (lease.Grant, error) { return s.Renew(bg, g, time.Minute) },
				func(t *testing.T, g, _ lease.Grant, err error) { isLost(t, "renew", err, g, lease.ReasonExpired) },
			},
			{
				"data is not written",
				func(g lease.Grant) (lease.Grant, error) { return g, s.Put(bg, g, []byte("late")) },
				func(t *testing.T, g, _ lease.Grant, err error) { isLost(t, "put", err, g, lease.ReasonExpired) },
			},
			{
				"the owner that acquires again gets a new token",
				func(g lease.Grant) (lease.Grant, error) { return s.Acquire(bg, g.Name, g.Owner, time.Minute) },
				func(t *testing.T, g, got lease.Grant, err error) {
					if err != nil {
						t.Fatal(err)
					}
					larger(t, got, g)
				},
			},
		} {
			t.Run(c.name, func(t *testing.T) {
				g := acquire(t, s, "job", "a", shortTTL)
				tx := d.lockRow(t, "job")
				type answer struct {
					g   lease.Grant
					err error
				}
				answers := make(chan answer, 1)
				go func() {
					got, err := c.call(g)
					answers <- answer{got, err}
				}()
				d.someoneWaits(t)
				d.passed(t, "job")
				if err := tx.Rollback(); err != nil { // nothing was changed
					t.Fatal(err)
				}
				a := <-answers
				c.ok(t, g, a.g, a.err)
				d.timeIsUp(t, "job")
			})
		}
	})
}
