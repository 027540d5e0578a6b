package leasetest

import (
	"time"

	"github.com/raftlease/raftlease/lease"
)

var renewCases = []one{
	{"G3 renewing extends the promise", 0, renewingExtends},
	{"G3 renewing with a shorter ttl shortens no promise", 0, shorterRenewShortensNothing},
	{"G6 renewing after a take-over is lost", 0, renewAfterTakeOver},
	{"G6 renewing after release is lost", 0, renewAfterRelease},
	{"G6 renewing after expiry is lost though nobody took the name", 0, renewAfterExpiry},
	{"G6 renewing by another owner is lost", 0, renewByAnother},
	{"G6 renewing with an old token is lost", 0, renewWithOldToken},
	{"G6 renewing a name that never was held is lost", 0, renewNeverHeld},
	{"G6 a grant known by name, owner and token alone can be renewed and released", 0, grantByHand},
}

func renewingExtends(e *env) {
	g := e.acquire(e.store(0), e.name("extended"), "a", e.long)
	for i, ttl := range []time.Duration{2 * e.long, 3 * e.long, 3 * e.long} {
		longer := e.renew(e.store(i), g.Grant, ttl)
		e.promised(e.store(i+1), longer, longer.sent.Add(longer.TTL), longer.TTL)
	}
}

func shorterRenewShortensNothing(e *env) {
	first := e.acquire(e.store(0), e.name("shorter"), "a", e.long)
	again := e.renew(e.store(0), first.Grant, e.short)
	e.promised(e.store(1), again, first.sent.Add(e.long), e.long)
	if err := first.Check(); err != nil {
		e.Errorf("the first grant value, after a shorter renewal: %v", err)
	}
}

func renewAfterTakeOver(e *env) {
	a := e.acquire(e.store(0), e.name("taken"), "a", e.short)
	b := e.takeOver(e.store(1), a, "b", e.long)
	for range 2 {
		e.notRenewed(e.store(0), a.Grant, &b)
	}
}

func renewAfterRelease(e *env) {
	g := e.acquire(e.store(0), e.name("released"), "a", e.long)
	e.release(e.store(0), g.Grant)
	for range 2 {
		e.notRenewed(e.store(1), g.Grant, nil)
	}
	next := e.acquire(e.store(1), g.Name, "b", e.long) // nothing was revived
	e.larger(next.Grant, g.Grant)
}

// renewAfterExpiry may come before the store ended the lease, and then extends
// it, only where nobody can look whether it has ended.
func renewAfterExpiry(e *env) {
	_, canLook := e.store(0).(lease.Inspector)
	g := e.acquire(e.store(0), e.name("expired"), "a", e.short)
	e.poll("a renewal that is lost", func() bool {
		e.expire(g)
		next, err := e.tryRenew(e.store(0), g.Grant, e.short)
		if err != nil {
			e.lost("renew "+g.Name, err, g.Grant)
			return true
		}
		if canLook {
			e.Fatalf("a grant of %q that had expired was renewed (G6)", g.Name)
		}
		g = next
		return false
	})
	e.notRenewed(e.store(0), g.Grant, nil)
	next := e.acquire(e.store(1), g.Name, "b", e.long)
	e.larger(next.Grant, g.Grant)
}

func renewByAnother(e *env) {
	g := e.acquire(e.store(0), e.name("stolen"), "a", e.long)
	thief := lease.Grant{Name: g.Name, Owner: "b", Token: g.Token}
	e.notRenewed(e.store(1), thief, &g)
	e.renew(e.store(0), g.Grant, e.long)
}

func renewWithOldToken(e *env) {
	old := e.acquire(e.store(0), e.name("old token"), "a", e.long)
	e.release(e.store(0), old.Grant)
	live := e.acquire(e.store(1), old.Name, "a", e.long) // the same owner
	e.notRenewed(e.store(0), old.Grant, &live)
	never := live.Grant
	never.Token += 1000
	e.notRenewed(e.store(0), never, &live)
	e.renew(e.store(1), live.Grant, e.long)
}

func renewNeverHeld(e *env) {
	never := lease.Grant{Name: e.name("never held"), Owner: "a", Token: 1}
	e.notRenewed(e.store(0), never, nil)
	e.acquire(e.store(1), never.Name, "b", e.long)
}

func grantByHand(e *env) {
	g := e.acquire(e.store(0), e.name("by hand"), "a", e.long)
	byHand := lease.Grant{Name: g.Name, Owner: g.Owner, Token: g.Token}
	renewed := e.renew(e.store(1), byHand, e.long)
	if err := renewed.Check(); err != nil {
		e.Errorf("renewed: %v", err)
	}
	e.release(e.store(1), byHand)
	e.acquire(e.store(0), g.Name, "b", e.long)
}
