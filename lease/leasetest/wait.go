package leasetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/raftlease/raftlease/lease"
)

var waitCases = []one{
	{"a waiter is granted a free name at once", waiter, waitForFree},
	{"G6 a waiter that holds the name gets its own grant", waiter, waitForOwn},
	{"a waiter is granted the name when it is released", waiter, waitForRelease},
	{"G3 a waiter is granted the name after expiry and not before", waiter, waitForExpiry},
	{"waiters are served first come first served", waiter, waitInOrder},
	{"G1 every waiter has its turn and none meets another", waiter, waitTurns},
	{"a waiter whose context ended is never left with a grant", waiter, waitEnded},
	{"G4 time spent waiting is not lease time", waiter, waitIsNotLeaseTime},
}

// wait is an AcquireWait under way.
type wait struct {
	parked chan struct{} // closed when the store has begun to wait for the context, if it ever does
	done   chan struct{} // closed when it returned
	held   held
	err    error
}

// parkedContext tells when somebody begins to wait for it.
type parkedContext struct {
	context.Context
	once   *sync.Once
	parked chan struct{}
}

func (c parkedContext) Done() <-chan struct{} {
	c.once.Do(func() { close(c.parked) })
	return c.Context.Done()
}

// wait starts an AcquireWait. The case ends only when it has returned.
func (e *env) wait(ctx context.Context, s lease.Store, name, owner string, ttl time.Duration) *wait {
	e.Helper()
	ctx, cancel := context.WithTimeout(ctx, e.suite.Patience)
	w := &wait{parked: make(chan struct{}), done: make(chan struct{})}
	shown := parkedContext{Context: ctx, once: new(sync.Once), parked: w.parked}
	go func() {
		defer close(w.done)
		defer cancel()
		for again := true; again; again = transient(w.err) && ctx.Err() == nil {
			w.held.sent = time.Now()
			w.held.Grant, w.err = s.(lease.Waiter).AcquireWait(shown, name, owner, ttl)
			w.held.got = time.Now()
		}
	}()
	e.Cleanup(func() {
		cancel()
		<-w.done
	})
	return w
}

// granted waits until w has the name and checks its grant.
func (w *wait) granted(e *env, name, owner string, ttl time.Duration) held {
	e.Helper()
	<-w.done
	h := w.held
	if w.err != nil {
		e.Fatalf("wait for %q: %v", name, w.err)
	}
	if h.Name != name || h.Owner != owner || h.TTL != ttl || h.Token == 0 || h.Token > lease.MaxToken {
		e.Errorf("wait for %q: grant %+v, want owner %q and ttl %v", name, h.Grant, owner, ttl)
	}
	e.checkDeadline("wait for "+name, h)
	return h
}

// isParked waits until w is as good as parked: the store has begun to wait for
// its context, and some later calls have been answered. More cannot be known
// from outside, so no case may fail because w was parked later.
func (w *wait) isParked(e *env, s lease.Store, name string) {
	e.Helper()
	select {
	case <-w.parked:
	case <-w.done:
	case <-time.After(e.short / 2): // a store may wait in another way
	}
	for range 3 {
		e.passed(time.Now(), e.short/50)
		_, err := e.tryAcquire(s, name, "passer-by", e.short)
		if !errors.Is(err, lease.ErrHeld) {
			e.Fatalf("acquire %q, which is held: %v (G1)", name, err)
		}
	}
}

func waitForFree(e *env) {
	name := e.name("free")
	g := e.wait(context.Background(), e.store(0), name, "a", e.long).granted(e, name, "a", e.long)
	if err := g.Check(); err != nil {
		e.Errorf("a new grant: %v", err)
	}
	e.promised(e.store(1), g, g.sent.Add(e.long), e.long)
}

func waitForOwn(e *env) {
	g := e.acquire(e.store(0), e.name("own"), "a", e.long)
	again := e.wait(context.Background(), e.store(1), g.Name, "a", 2*e.long).granted(e, g.Name, "a", 2*e.long)
	if again.Token != g.Token {
		e.Errorf("token %d, want the live one, %d", again.Token, g.Token)
	}
	e.promised(e.store(0), again, again.sent.Add(2*e.long), 2*e.long)
}

func waitForRelease(e *env) {
	g := e.acquire(e.store(0), e.name("released"), "a", e.long)
	w := e.wait(context.Background(), e.store(1), g.Name, "b", e.long)
	w.isParked(e, e.store(1), g.Name)
	select {
	case <-w.done:
		e.Fatalf("the wait ended while the name was held: grant %+v, error %v (G1)", w.held.Grant, w.err)
	default:
	}
	e.release(e.store(0), g.Grant)
	next := w.granted(e, g.Name, "b", e.long)
	e.larger(next.Grant, g.Grant)
	e.refused(e.store(0), next)
}

func waitForExpiry(e *env) {
	g := e.acquire(e.store(0), e.name("expires"), "a", e.short)
	w := e.wait(context.Background(), e.store(1), g.Name, "b", e.long)
	next := w.granted(e, g.Name, "b", e.long)
	if lasted := next.got.Sub(g.sent); lasted < e.short {
		e.Errorf("granted to a waiter %v after it had been requested for %v (G3)", lasted, e.short)
	}
	if g.Check() == nil {
		e.Errorf("granted to a waiter while the holder before believes in its grant (G4)")
	}
	e.larger(next.Grant, g.Grant)
	e.refused(e.store(0), next)
}

// waitInOrder lets waiters come one after the other. From outside one cannot be
// sure that they arrived in that order, so one round of three in order will do.
func waitInOrder(e *env) {
	if e.store(0).Guarantee() != lease.Exclusive {
		e.Skip("only an exclusive store promises an order")
	}
	const waiters = 5
	for round := range 3 {
		g := e.acquire(e.store(0), e.name(fmt.Sprint("queue ", round)), "a", e.long)
		var mu sync.Mutex
		var order []int
		var all sync.WaitGroup
		for i := range waiters {
			owner := fmt.Sprint("owner ", i)
			w := e.wait(context.Background(), e.store(0), g.Name, owner, e.long)
			w.isParked(e, e.store(0), g.Name)
			all.Go(func() {
				next := w.granted(e, g.Name, owner, e.long)
				mu.Lock()
				order = append(order, i)
				mu.Unlock()
				e.release(e.store(0), next.Grant)
			})
		}
		e.release(e.store(0), g.Grant)
		all.Wait()
		if slices.IsSorted(order) && len(order) == waiters {
			return
		}
		e.Logf("round %d: waiters were served in the order %v", round, order)
	}
	e.Errorf("waiters were not served in the order in which they came")
}

func waitTurns(e *env) {
	const waiters = 16
	g := e.acquire(e.store(0), e.name("turns"), "a", e.long)
	var section turns
	var all sync.WaitGroup
	for i := range waiters {
		owner := fmt.Sprint("owner ", i)
		w := e.wait(context.Background(), e.store(i), g.Name, owner, e.long)
		all.Go(func() {
			next := w.granted(e, g.Name, owner, e.long)
			section.take(e, next)
			e.release(e.store(i), next.Grant)
		})
	}
	section.take(e, g)
	e.release(e.store(0), g.Grant)
	all.Wait()
}

func waitEnded(e *env) {
	g := e.acquire(e.store(0), e.name("ended"), "a", e.long)
	ctx, cancel := context.WithCancelCause(context.Background())
	w := e.wait(ctx, e.store(1), g.Name, "b", e.long)
	w.isParked(e, e.store(1), g.Name)
	cancel(errStopped)
	<-w.done
	e.stopped("wait", w.err)
	if w.held.Grant != (lease.Grant{}) {
		e.Errorf("wait: grant %+v together with error %v", w.held.Grant, w.err)
	}
	e.refused(e.store(0), g)
	e.release(e.store(0), g.Grant)
	// If the store grants first and looks then, the grant must go at once.
	e.poll("the name is free of the waiter that left", func() bool {
		_, err := e.tryAcquire(e.store(0), g.Name, "c", e.long)
		return err == nil
	})
}

// waitIsNotLeaseTime waits for longer than the ttl that it then gets. Time that
// passed before the store parked the waiter, or after it answered, does count,
// and only where that was short does it matter what remains.
func waitIsNotLeaseTime(e *env) {
	const tries = 5
	low := 0
	for try := range tries {
		g := e.acquire(e.store(0), e.name(fmt.Sprint("patient ", try)), "a", e.long)
		began := time.Now()
		w := e.wait(context.Background(), e.store(1), g.Name, "b", e.short)
		w.isParked(e, e.store(1), g.Name)
		early := time.Since(began)
		e.passed(time.Now(), e.short*3/2)
		freed := time.Now()
		e.release(e.store(0), g.Grant)
		next := w.granted(e, g.Name, "b", e.short)
		remaining, late := next.Remaining(), time.Since(freed)
		switch {
		case remaining >= e.short/3:
			e.takeOver(e.store(1), held{Grant: next.Grant, sent: freed, got: next.got}, "c", e.short)
			return
		case early < e.short/4 && late < e.short/4:
			low++
		}
		e.Logf("%v remain of ttl %v after a wait of %v, %v after the release", remaining, e.short, freed.Sub(began), late)
	}
	if low == tries {
		e.Errorf("in each of %d waits little remained of the ttl, want nearly all", tries)
		return
	}
	e.Skip("this machine is too slow to see a grant before it ends")
}
