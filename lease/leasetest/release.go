package leasetest

import (
	"context"

	"github.com/raftlease/raftlease/lease"
)

var releaseCases = []one{
	{"a release frees the name at once", 0, releaseFreesAtOnce},
	{"G1 a release by another owner changes nothing", 0, releaseByAnother},
	{"G1 a release with an old token changes nothing", 0, releaseWithOldToken},
	{"G6 a release of what is not held is no error", 0, releaseNotHeld},
}

var retryCases = []one{
	{"G6 acquiring twice makes one grant", 0, acquireTwice},
	{"G6 renewing twice does what once does", 0, renewTwice},
	{"G6 releasing twice frees no later grant", 0, releaseTwice},
	{"G6 the calls of one holder may be repeated in turn", 0, repeatInTurn},
}

func releaseFreesAtOnce(e *env) {
	for i := range 2 * len(e.stores) {
		g := e.acquire(e.store(i), e.name("freed"), "a", e.long)
		e.release(e.store(i), g.Grant)
		next := e.acquire(e.store(i+1), g.Name, "b", e.long)
		e.release(e.store(i+1), next.Grant)
	}
}

func releaseByAnother(e *env) {
	g := e.acquire(e.store(0), e.name("kept"), "a", e.long)
	e.release(e.store(1), lease.Grant{Name: g.Name, Owner: "b", Token: g.Token})
	e.refused(e.store(1), g)
	e.renew(e.store(0), g.Grant, e.long)
}

func releaseWithOldToken(e *env) {
	old := e.acquire(e.store(0), e.name("kept"), "a", e.long)
	e.release(e.store(0), old.Grant)
	live := e.acquire(e.store(0), old.Name, "a", e.long) // the same owner
	never := live.Grant
	never.Token += 1000
	for _, g := range []lease.Grant{old.Grant, never} {
		e.release(e.store(1), g)
		e.refused(e.store(1), live)
	}
	e.renew(e.store(0), live.Grant, e.long)
}

func releaseNotHeld(e *env) {
	e.release(e.store(0), lease.Grant{Name: e.name("never held"), Owner: "a", Token: 1})
	expired := e.acquire(e.store(0), e.name("expired"), "a", e.short)
	e.expire(expired)
	e.release(e.store(0), expired.Grant)
}

func acquireTwice(e *env) {
	name := e.name("twice")
	first := e.acquire(e.store(0), name, "a", e.long)
	second := e.acquire(e.store(1), name, "a", e.long)
	if first.Token != second.Token {
		e.Errorf("tokens %d and %d, want one", first.Token, second.Token)
	}
	e.release(e.store(0), first.Grant)
	e.acquire(e.store(0), name, "b", e.long) // one release ends it
}

func renewTwice(e *env) {
	g := e.acquire(e.store(0), e.name("twice"), "a", e.long)
	for _, ttl := range []int{1, 1, 2, 2} {
		r := e.renew(e.store(ttl), g.Grant, e.long)
		e.promised(e.store(0), r, r.sent.Add(e.long), e.long)
	}
}

func releaseTwice(e *env) {
	a := e.acquire(e.store(0), e.name("twice"), "a", e.long)
	e.release(e.store(0), a.Grant)
	e.release(e.store(1), a.Grant)
	b := e.acquire(e.store(1), a.Name, "b", e.long)
	e.release(e.store(0), a.Grant)
	e.refused(e.store(0), b)
	e.renew(e.store(1), b.Grant, e.long)
}

// repeatInTurn is a holder whose every first answer was lost.
func repeatInTurn(e *env) {
	name := e.name("in turn")
	for i := range 3 {
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(errStopped)
		_, _ = e.store(i).Acquire(ctx, name, "a", e.long)
		g := e.acquire(e.store(i), name, "a", e.long)
		_, _ = e.store(i).Renew(ctx, g.Grant, e.long)
		e.renew(e.store(i), g.Grant, e.long)
		_ = e.store(i).Release(ctx, g.Grant)
		e.release(e.store(i), g.Grant)
		next := e.acquire(e.store(i+1), name, "b", e.long)
		e.larger(next.Grant, g.Grant)
		e.release(e.store(i+1), next.Grant)
	}
}
