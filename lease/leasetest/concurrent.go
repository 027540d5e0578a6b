package leasetest

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/raftlease/raftlease/lease"
)

var concurrentCases = []one{
	{"G1 of 64 contenders one wins", 0, oneWinner},
	{"G1 contenders that take turns never meet", 0, turnsNeverMeet},
}

func oneWinner(e *env) {
	const n = 64
	name := e.name("contended")
	won := make([]held, n)
	refusals := make([]*lease.HeldError, n)
	e.parallel(n, func(i int) {
		g, err := e.tryAcquire(e.store(i), name, fmt.Sprint("owner ", i), e.long)
		if err != nil && !errors.As(err, &refusals[i]) {
			e.Errorf("contender %d: %v", i, err)
		}
		won[i] = g
	})
	var winner held
	for i, g := range won {
		switch {
		case g.Token == 0:
		case winner.Token != 0:
			e.Errorf("%q won with token %d and %q with %d (G1)", winner.Owner, winner.Token, g.Owner, won[i].Token)
		default:
			winner = g
		}
	}
	if winner.Token == 0 {
		e.Fatalf("nobody won")
	}
	for i, h := range refusals {
		if h != nil && (h.Owner != winner.Owner || h.Token != winner.Token) {
			e.Errorf("contender %d was refused for %q with token %d, want %q with %d (G6)",
				i, h.Owner, h.Token, winner.Owner, winner.Token)
		}
	}
	e.refused(e.store(0), winner)
}

// turns checks that critical sections under one name never meet and see rising
// tokens. The zero value is ready to use.
type turns struct {
	inside atomic.Int32
	token  atomic.Uint64
}

func (t *turns) take(e *env, g held) {
	e.Helper()
	if n := t.inside.Add(1); n != 1 {
		e.Errorf("%d owners hold %q at once (G1)", n, g.Name)
	}
	if before := t.token.Swap(g.Token); g.Token <= before {
		e.Errorf("%q: token %d granted after %d, want a larger one (G2)", g.Name, g.Token, before)
	}
	e.passed(time.Now(), time.Millisecond) // long enough to be met
	t.inside.Add(-1)
}

func turnsNeverMeet(e *env) {
	const contenders, rounds = 8, 8
	name := e.name("turns")
	var section turns
	e.parallel(contenders, func(i int) {
		owner := fmt.Sprint("owner ", i)
		for range rounds {
			e.poll("a turn", func() bool {
				g, err := e.tryAcquire(e.store(i), name, owner, e.long)
				if err != nil {
					if !errors.Is(err, lease.ErrHeld) {
						e.Errorf("%s: %v", owner, err)
					}
					return !errors.Is(err, lease.ErrHeld)
				}
				if _, err := e.tryRenew(e.store(i), g.Grant, e.long); err != nil {
					e.Errorf("%s: %v", owner, err)
				}
				section.take(e, g)
				e.release(e.store(i), g.Grant)
				return true
			})
		}
	})
}
