package leasetest

import (
	"errors"
	"time"

	"github.com/raftlease/raftlease/lease"
)

// larger checks that the token of g rose above that of an earlier grant.
func (e *env) larger(g, earlier lease.Grant) {
	e.Helper()
	if g.Token <= earlier.Token {
		e.Errorf("%q: token %d granted after %d, want a larger one (G2)", g.Name, g.Token, earlier.Token)
	}
}

// refused checks that g is live and that a stranger is told so.
func (e *env) refused(s lease.Store, g held) *lease.HeldError {
	e.Helper()
	_, err := e.tryAcquire(s, g.Name, "stranger", e.short)
	if err == nil {
		e.Fatalf("%q was granted to a stranger while %q holds it with token %d (G1)", g.Name, g.Owner, g.Token)
	}
	var h *lease.HeldError
	if !errors.As(err, &h) || !errors.Is(err, lease.ErrHeld) {
		e.Fatalf("acquire %q held by %q: error %v (%T), want a *lease.HeldError", g.Name, g.Owner, err, err)
	}
	if h.Name != g.Name || h.Owner != g.Owner || h.Token != g.Token {
		e.Fatalf("refused with name %q, owner %q, token %d, want %q, %q, %d (G6)",
			h.Name, h.Owner, h.Token, g.Name, g.Owner, g.Token)
	}
	return h
}

// promised checks that the store keeps g for its owner until a moment, and
// says so to a stranger; most bounds what it may say.
func (e *env) promised(s lease.Store, g held, until time.Time, most time.Duration) {
	e.Helper()
	h := e.refused(s, g)
	if now := time.Now(); now.Add(h.Remaining).Before(until) {
		e.Errorf("%q may be granted to another in %v, %v before the promise to %q ends (G3)",
			g.Name, h.Remaining, until.Sub(now)-h.Remaining, g.Owner)
	}
	if h.Remaining <= 0 || h.Remaining > lease.Longer(most)+time.Millisecond {
		e.Errorf("%q: %v remain, want more than 0 and at most the ttl %v and drift", g.Name, h.Remaining, most)
	}
}

// lost checks that err tells the owner of g that it is lost.
func (e *env) lost(what string, err error, g lease.Grant) *lease.LostError {
	e.Helper()
	var l *lease.LostError
	if !errors.As(err, &l) || !errors.Is(err, lease.ErrLost) {
		e.Fatalf("%s: error %v (%T), want a *lease.LostError", what, err, err)
	}
	if l.Name != g.Name || l.Owner != g.Owner || l.Token != g.Token || l.Reason == "" {
		e.Errorf("%s: lost with name %q, owner %q, token %d, reason %q, want %q, %q, %d and a reason (G6)",
			what, l.Name, l.Owner, l.Token, l.Reason, g.Name, g.Owner, g.Token)
	}
	return l
}

// notRenewed checks that g cannot be renewed, and that trying changed nothing
// for live, the grant that now has the name, if any.
func (e *env) notRenewed(s lease.Store, g lease.Grant, live *held) {
	e.Helper()
	_, err := e.tryRenew(s, g, e.long)
	what := "renew " + g.Name
	l := e.lost(what, err, g)
	switch {
	case live == nil:
		if l.NewOwner != "" || l.NewToken != 0 {
			e.Errorf("%s: now held by %q with token %d, want nobody", what, l.NewOwner, l.NewToken)
		}
	case l.NewOwner != "" && (l.NewOwner != live.Owner || l.NewToken != live.Token):
		e.Errorf("%s: now held by %q with token %d, want %q with %d", what, l.NewOwner, l.NewToken, live.Owner, live.Token)
	}
	if live != nil {
		e.refused(s, *live)
	}
}
