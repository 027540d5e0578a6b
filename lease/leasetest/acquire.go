package leasetest

import "github.com/raftlease/raftlease/lease"

var acquireCases = []one{
	{"G1 a free name is granted", 0, freeNameIsGranted},
	{"G1 a second owner is refused and told who holds the name", 0, secondOwnerIsRefused},
	{"G2 tokens rise across releases", 0, tokensRiseAcrossReleases},
	{"G6 the owner acquires again with the same token", 0, ownerAcquiresAgain},
	{"G3 acquiring again extends the promise", 0, acquiringAgainExtends},
	{"G3 acquiring again with a shorter ttl shortens no promise", 0, shorterAcquireShortensNothing},
	{"the guarantee is exclusive or eventual", 0, guaranteeIsKnown},
}

func freeNameIsGranted(e *env) {
	for _, s := range e.stores {
		name := e.name("free")
		g := e.acquire(s, name, "a", e.long)
		if err := g.Check(); err != nil {
			e.Errorf("a new grant of %v: %v", e.long, err)
		}
		e.release(s, g.Grant)
	}
}

func secondOwnerIsRefused(e *env) {
	g := e.acquire(e.store(0), e.name("held"), "a", e.long)
	for _, s := range e.stores {
		for range 2 { // being refused changes nothing
			e.promised(s, g, g.sent.Add(e.long), e.long)
		}
	}
	if err := g.Check(); err != nil {
		e.Errorf("the first owner, after the second was refused: %v", err)
	}
	e.renew(e.store(0), g.Grant, e.long)
}

func tokensRiseAcrossReleases(e *env) {
	var last lease.Grant
	for i := range 12 {
		owner := []string{"a", "a", "b"}[i%3] // the same owner again, too
		g := e.acquire(e.store(i), e.name("passed on"), owner, e.long)
		e.larger(g.Grant, last)
		e.release(e.store(i), g.Grant)
		last = g.Grant
	}
}

func ownerAcquiresAgain(e *env) {
	name := e.name("again")
	first := e.acquire(e.store(0), name, "a", e.long)
	for _, s := range e.stores {
		again := e.acquire(s, name, "a", e.long)
		if again.Token != first.Token {
			e.Errorf("the owner acquired again: token %d, want the live one, %d", again.Token, first.Token)
		}
	}
	e.renew(e.store(0), first.Grant, e.long) // both values are the one grant
}

func acquiringAgainExtends(e *env) {
	name := e.name("again")
	e.acquire(e.store(0), name, "a", e.long)
	again := e.acquire(e.store(0), name, "a", 2*e.long)
	e.promised(e.store(1), again, again.sent.Add(2*e.long), 2*e.long)
}

func shorterAcquireShortensNothing(e *env) {
	name := e.name("again")
	first := e.acquire(e.store(0), name, "a", e.long)
	again := e.acquire(e.store(0), name, "a", e.short)
	e.promised(e.store(1), again, first.sent.Add(e.long), e.long)
}

func guaranteeIsKnown(e *env) {
	for _, s := range e.stores {
		if g := s.Guarantee(); g != lease.Exclusive && g != lease.Eventual {
			e.Errorf("guarantee %d, want lease.Exclusive or lease.Eventual", g)
		}
		if s.Guarantee() != e.store(0).Guarantee() {
			e.Errorf("handles of one store with different guarantees")
		}
	}
}
