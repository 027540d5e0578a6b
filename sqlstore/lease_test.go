package sqlstore

import (
	"context"
	"database/sql/driver"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/raftlease/raftlease/lease"
)

// script is a fake that has these answers, and no more.
func script(t testing.TB, answers ...func(text string, args []driver.NamedValue) answer) *fake {
	t.Cleanup(func() {
		if len(answers) != 0 {
			t.Errorf("%d statements were not sent", len(answers))
		}
	})
	return &fake{reply: func(_ context.Context, text string, args []driver.NamedValue) answer {
		if len(answers) == 0 {
			t.Errorf("a statement too many: %s", text)
			return answer{err: errors.New("a statement too many")}
		}
		next := answers[0]
		answers = answers[1:]
		return next(text, args)
	}}
}

func says(a answer) func(string, []driver.NamedValue) answer {
	return func(string, []driver.NamedValue) answer { return a }
}

// Rule 6, case 3, G4: the deadline counts from before the statement was sent,
// however late its answer is, and from the attempt that succeeded, however many
// were before it.
func TestStore_EachAttemptHasItsOwnAnchor(t *testing.T) {
	const ttl, slow, late = time.Minute, time.Hour, 13 * time.Second
	clock := new(handClock)
	refused := func(string, []driver.NamedValue) answer {
		clock.moves(slow)
		return answer{err: sqlState("40P01")}
	}
	granted := func(string, []driver.NamedValue) answer {
		clock.moves(late)
		return one(int64(7))
	}
	look := func(string, []driver.NamedValue) answer {
		clock.moves(slow)
		return free(6)
	}
	check := func(t *testing.T, g lease.Grant, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		if got, want := g.Remaining(), lease.Shorter(ttl)-late; got != want {
			t.Errorf("%v remain of %v, want %v", got, ttl, want)
		}
	}
	t.Run("acquire", func(t *testing.T) {
		s := script(t, look, refused, refused, granted).on(t, Postgres, Config{Holder: clock})
		g, err := s.Acquire(bg, "job", "a", ttl)
		check(t, g, err)
	})
	t.Run("renew", func(t *testing.T) {
		s := script(t, refused, refused, granted).on(t, Postgres, Config{Holder: clock})
		g, err := s.Renew(bg, grantA, ttl)
		check(t, g, err)
	})
}

// An acquire says which token it saw last, so that one that arrives late does
// nothing, and looks again when the record had changed.
func TestStore_AcquireNamesTheTokenItSaw(t *testing.T) {
	var seen []int64
	acquire := func(a answer) func(string, []driver.NamedValue) answer {
		return func(_ string, args []driver.NamedValue) answer {
			seen = append(seen, args[2].Value.(int64))
			return a
		}
	}
	s := script(t, says(free(6)), acquire(none), says(free(8)), acquire(one(int64(9)))).on(t, Postgres, Config{})
	g, err := s.Acquire(bg, "job", "a", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if want := []int64{6, 8}; g.Token != 9 || !slices.Equal(seen, want) {
		t.Errorf("token %d after having seen %v, want 9 after %v", g.Token, seen, want)
	}
}

// A refusal costs one statement and locks nothing.
func TestStore_RefusalOnlyReads(t *testing.T) {
	f := script(t, func(text string, _ []driver.NamedValue) answer {
		if names, _ := (Config{}).names(Postgres); text != Postgres.statements(names).read {
			t.Errorf("the statement is %s", text)
		}
		return taken("b", 7)
	})
	_, err := f.on(t, Postgres, Config{}).Acquire(bg, "job", "a", time.Minute)
	var held *lease.HeldError
	if !errors.As(err, &held) {
		t.Fatalf("error %v, want a *lease.HeldError", err)
	}
	if want := (lease.HeldError{Name: "job", Owner: "b", Token: 7, Remaining: time.Minute}); *held != want {
		t.Errorf("%+v, want %+v", *held, want)
	}
}

// The database's clock was set back between two statements: what could not be
// renewed is live again, so it is renewed.
func TestStore_ClockSetBackDuringRenew(t *testing.T) {
	s := script(t, says(none), says(taken("a", 7)), says(one(int64(7)))).on(t, Postgres, Config{})
	if _, err := s.Renew(bg, grantA, time.Minute); err != nil {
		t.Error(err)
	}
}

// What is kept in the database is never less than what a holder counts, also
// when both readings of its clock were rounded down by nearly a millisecond.
func TestLength(t *testing.T) {
	for _, ttl := range []time.Duration{time.Millisecond, 50 * time.Millisecond, time.Second, 1001 * time.Millisecond, time.Minute, 24 * time.Hour} {
		got := time.Duration(length(ttl)) * time.Millisecond
		if least := got - time.Millisecond; least < ttl {
			t.Errorf("%v is kept for as little as %v", ttl, least)
		}
		if most := lease.Longer(ttl) + time.Millisecond; got > most {
			t.Errorf("%v is kept for %v, want at most %v", ttl, got, most)
		}
	}
}
