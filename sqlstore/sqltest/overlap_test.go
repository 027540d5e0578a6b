package sqltest

import (
	"testing"
	"time"

	"github.com/raftlease/raftlease/internal/clock"
	"github.com/raftlease/raftlease/lease"
	"github.com/raftlease/raftlease/sqlstore"
)

// These tests show what lease.Eventual means: each makes two owners believe in
// a grant of one name at once, and passes because they do. If one fails, the
// package comment of sqlstore promises too little.

// believesToo checks that the two grants are of one name, of different owners,
// and that both holders would act now.
func believesToo(t testing.TB, a, b lease.Grant) {
	t.Helper()
	if a.Name != b.Name || a.Owner == b.Owner {
		t.Fatalf("%+v and %+v are no overlap", a, b)
	}
	if err := a.Check(); err != nil {
		t.Errorf("no overlap: the first holder knows that its grant is over: %v", err)
	}
	if err := b.Check(); err != nil {
		t.Errorf("no overlap: the second holder has no grant: %v", err)
	}
}

// frozenClock is what a process sees whose virtual machine is paused.
type frozenClock struct{ at clock.Reading }

func (c frozenClock) Now() clock.Reading { return c.at }

// The holder freezes with everything that it could look at. It would act, but
// what checks the token is safe (G7).
func TestEventual_FrozenHolderOverlaps(t *testing.T) {
	onEach(t, func(t *testing.T, d database) {
		limits := lease.Limits{MinTTL: shortTTL}
		frozen := d.storeAs(t, sqlstore.Config{Limits: limits, Holder: frozenClock{clock.System().Now()}})
		s := d.storeAs(t, sqlstore.Config{Limits: limits})
		a := acquire(t, frozen, "job", "a", shortTTL)
		d.passed(t, "job")
		b := acquire(t, s, "job", "b", time.Minute)
		believesToo(t, a, b)

		larger(t, b, a)
		isLost(t, "put", frozen.Put(bg, a, []byte("stale")), a, lease.ReasonTaken)
		isLost(t, "check", frozen.Check(bg, d.begin(t), a), a, lease.ReasonTaken)
	})
}

// A holder that runs and looks at its clock does not overlap: the same
// experiment without the freeze.
func TestEventual_RunningHolderDoesNotOverlap(t *testing.T) {
	onEach(t, func(t *testing.T, d database) {
		s := d.storeAs(t, sqlstore.Config{Limits: lease.Limits{MinTTL: shortTTL}})
		a := acquire(t, s, "job", "a", shortTTL)
		d.passed(t, "job")
		acquire(t, s, "job", "b", time.Minute)
		if err := a.Check(); err == nil {
			t.Error("a running holder believes in its grant while another has the name (G4)")
		}
	})
}

// The database's clock is set forward by an hour while a healthy holder works.
func TestEventual_ClockStepOverlaps(t *testing.T) {
	onEach(t, func(t *testing.T, d database) {
		s := d.store(t)
		a := acquire(t, s, "job", "a", time.Minute)
		// Whether the clock goes forward or all times go back is the same.
		d.do(t, "UPDATE "+d.table+" SET expires = expires - 3600000")
		b := acquire(t, s, "job", "b", time.Minute)
		believesToo(t, a, b)

		larger(t, b, a)
		isLost(t, "put", s.Put(bg, a, []byte("stale")), a, lease.ReasonTaken)
	})
}

// The database fails over to a copy that lacks the last grant. Here the tokens
// are the same, and nothing that checks a token can tell the two apart.
func TestEventual_LostCommitOverlaps(t *testing.T) {
	onEach(t, func(t *testing.T, d database) {
		s := d.store(t)
		release(t, s, acquire(t, s, "job", "before", time.Minute))
		type copied struct{ token, last int64 }
		backup := copied{
			d.count(t, "SELECT token FROM "+d.table+" WHERE name = 'job'"),
			d.count(t, "SELECT token FROM "+d.tokens()),
		}
		a := acquire(t, s, "job", "a", time.Minute)
		d.do(t, "UPDATE "+d.table+" SET owner = '', ttl = 0, expires = 0, token = "+decimal(backup.token))
		d.do(t, "UPDATE "+d.tokens()+" SET token = "+decimal(backup.last))
		b := acquire(t, s, "job", "b", time.Minute)
		believesToo(t, a, b)
		if a.Token != b.Token {
			t.Errorf("tokens %d and %d; the package comment says that they may be equal", a.Token, b.Token)
		}
	})
}
