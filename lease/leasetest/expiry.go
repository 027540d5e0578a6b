package leasetest

import (
	"fmt"
	"sync"
	"time"
)

var expiryCases = []one{
	{"G3 nobody else is granted a name before its ttl has passed", 0, grantLasts},
	{"G2 a take-over after expiry gets a larger token", 0, takeOverAfterExpiry},
	{"G2 the same owner gets a larger token after expiry", 0, sameOwnerAfterExpiry},
	{"G3 a renewed lease outlives its first ttl", 0, renewedLeaseLasts},
	{"G4 the holder knows before anybody else is granted the name", 0, holderKnowsFirst},
}

func grantLasts(e *env) {
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			name := e.name(fmt.Sprint("lasts ", i))
			sent := time.Now()
			g, err := e.tryAcquire(e.store(i), name, "a", e.short)
			if err != nil {
				e.Errorf("acquire %q: %v", name, err)
				return
			}
			e.passed(sent, e.short*7/8)
			e.takeOver(e.store(i+1), g, "b", e.short)
		})
	}
	all.Wait()
}

func takeOverAfterExpiry(e *env) {
	name := e.name("expires")
	a := e.acquire(e.store(0), name, "a", e.short)
	b := e.takeOver(e.store(1), a, "b", e.short)
	e.takeOver(e.store(2), b, "a", e.long)
}

// expire waits until g has ended, without anybody taking the name.
func (e *env) expire(g held) {
	e.Helper()
	e.poll("expiry of "+g.Name, func() bool { return e.free(e.store(0), g) })
	if lasted := time.Since(g.sent); lasted < g.TTL {
		e.Errorf("%q expired %v after it had been requested for %v (G3)", g.Name, lasted, g.TTL)
	}
}

func sameOwnerAfterExpiry(e *env) {
	name := e.name("expires")
	e.poll("a new token for the same owner", func() bool {
		g := e.acquire(e.store(0), name, "a", e.short)
		e.expire(g)
		next := e.acquire(e.store(0), name, "a", e.short)
		if next.Token != g.Token {
			e.larger(next.Grant, g.Grant)
		}
		// A store may end a lease later than its ttl, and where nobody can look,
		// the owner may have come before that.
		return next.Token != g.Token
	})
}

// renewedLeaseLasts keeps a lease for two of its ttls. Whether the test itself
// was too slow to keep it is decided by the clock, so only a store can fail.
func renewedLeaseLasts(e *env) {
	for try := range 5 {
		name := e.name(fmt.Sprint("kept ", try))
		first := e.acquire(e.store(0), name, "a", e.short)
		last, kept := first, true
		e.poll("two ttls", func() bool {
			if time.Since(last.sent) >= e.short/3 {
				next, err := e.tryRenew(e.store(0), last.Grant, e.short)
				if err != nil {
					kept = false
					e.tooSlow(last, "the renewal was refused: "+err.Error())
					return true
				}
				last = next
			}
			if g, err := e.tryAcquire(e.store(1), name, "b", e.short); err == nil {
				kept = false
				e.larger(g.Grant, last.Grant)
				e.tooSlow(last, "the name was granted to another")
				return true
			}
			return time.Since(first.sent) > 2*e.short
		})
		if kept {
			e.takeOver(e.store(1), last, "b", e.short)
			return
		}
	}
	e.Skip("this machine is too slow to renew a lease in time")
}

// inTime repeats what a test must do with a short grant before it ends, with a
// number to tell the repetitions apart, until it was in time.
func (e *env) inTime(what string, try func(n int) (ok bool)) {
	e.Helper()
	n := 0
	e.poll(what, func() bool {
		n++
		return try(n)
	})
}

// tooSlow reports that g ended, unless its ttl has really passed.
func (e *env) tooSlow(g held, what string) {
	e.Helper()
	if lasted := time.Since(g.sent); lasted < g.TTL {
		e.Fatalf("%q, %v after the last renewal for %v: %s (G3)", g.Name, lasted, g.TTL, what)
	}
}

// holderKnowsFirst looks at a grant and at its renewal when a rival has the
// name.
func holderKnowsFirst(e *env) {
	e.inTime("a renewal in time", func(n int) bool {
		g := e.acquire(e.store(0), e.name(fmt.Sprint("known ", n)), "a", e.short)
		renewed, err := e.tryRenew(e.store(0), g.Grant, e.short)
		if err != nil {
			e.tooSlow(g, "the renewal was refused: "+err.Error())
			return false
		}
		next := e.takeOver(e.store(1), renewed, "b", e.short)
		for _, old := range []held{g, renewed} {
			if err := old.Check(); err == nil {
				e.Errorf("the grant of %q is good while %q has the name (G4)", old.Owner, next.Owner)
			} else {
				e.lost("check "+old.Name, err, old.Grant)
			}
			if r := old.Remaining(); r != 0 {
				e.Errorf("%v remain of a grant that is over, want 0", r)
			}
		}
		return true
	})
}
