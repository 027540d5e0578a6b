package leasetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/raftlease/raftlease/lease"
)

// env is what one case works with: the store, names of its own, and calls that
// check what is true of every answer.
type env struct {
	testing.TB
	*fixture
	stores []lease.Store // handles of one store
	prefix string        // of all names of the case
	short  time.Duration // ttl of grants that shall expire
	long   time.Duration // ttl of grants that must outlast the case
}

// held is a grant with the readings that bound when it was made.
type held struct {
	lease.Grant
	sent time.Time // before the request
	got  time.Time // after the answer
}

func (e *env) name(s string) string { return e.prefix + s }

// store returns a handle; calls that shall meet each other use different ones.
func (e *env) store(i int) lease.Store { return e.stores[i%len(e.stores)] }

// poll calls done, at short intervals, until it returns true. The case fails
// when that takes longer than the suite's patience.
func (e *env) poll(what string, done func() bool) {
	e.Helper()
	end := time.Now().Add(e.suite.Patience)
	tick := time.NewTicker(min(max(e.short/100, time.Millisecond), 10*time.Millisecond))
	defer tick.Stop()
	for !done() {
		if time.Now().After(end) {
			e.Fatalf("%s: not within %v", what, e.suite.Patience)
		}
		<-tick.C
	}
}

// passed waits until d has passed since from.
func (e *env) passed(from time.Time, d time.Duration) {
	wait := time.NewTimer(time.Until(from.Add(d)))
	defer wait.Stop()
	<-wait.C
}

// call makes one call with a context of bounded time. As every call is safe to
// repeat, it is repeated while the store is unavailable or the outcome unknown.
func (e *env) call(what string, do func(ctx context.Context) error) error {
	e.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), e.suite.Patience)
	defer cancel()
	var err error
	e.poll(what, func() bool {
		err = do(ctx)
		again := transient(err) && ctx.Err() == nil
		if again {
			e.Logf("%s: %v; again", what, err)
		}
		return !again
	})
	return err
}

// transient reports whether a call has to be repeated for an answer.
func transient(err error) bool {
	return errors.Is(err, lease.ErrUnavailable) || errors.Is(err, lease.ErrUnknownOutcome)
}

// grantFrom is Acquire, AcquireWait or Renew with its arguments.
type grantFrom func(ctx context.Context) (lease.Grant, error)

// grant makes the call and checks the grant that it returns.
func (e *env) grant(what, name, owner string, ttl time.Duration, from grantFrom) (held, error) {
	e.Helper()
	var h held
	err := e.call(what, func(ctx context.Context) (err error) {
		h.sent = time.Now()
		h.Grant, err = from(ctx)
		h.got = time.Now()
		return err
	})
	if err != nil {
		if h.Grant != (lease.Grant{}) {
			e.Errorf("%s: grant %+v together with error %v", what, h.Grant, err)
		}
		return held{}, err
	}
	if h.Name != name || h.Owner != owner || h.TTL != ttl {
		e.Errorf("%s: name %q, owner %q, ttl %v, want %q, %q, %v", what, h.Name, h.Owner, h.TTL, name, owner, ttl)
	}
	if h.Token == 0 || h.Token > lease.MaxToken {
		e.Errorf("%s: token %d, want 1 to 2^53-1 (G2)", what, h.Token)
	}
	e.checkDeadline(what, h)
	return h, nil
}

// checkDeadline reports a grant that its holder would believe for too long.
// Whatever the store did, the grant cannot have been made after its answer.
func (e *env) checkDeadline(what string, h held) {
	e.Helper()
	now := time.Now()
	remaining := h.Remaining()
	if most := lease.Shorter(h.TTL) - now.Sub(h.got); remaining > max(most, 0) {
		e.Errorf("%s: %v remain of ttl %v, %v after the answer; want at most %v (G4)",
			what, remaining, h.TTL, now.Sub(h.got), most)
	}
}

func (e *env) tryAcquire(s lease.Store, name, owner string, ttl time.Duration) (held, error) {
	e.Helper()
	return e.grant("acquire "+name+" for "+owner, name, owner, ttl, func(ctx context.Context) (lease.Grant, error) {
		return s.Acquire(ctx, name, owner, ttl)
	})
}

// acquire is for a name that is free or owner's own.
func (e *env) acquire(s lease.Store, name, owner string, ttl time.Duration) held {
	e.Helper()
	h, err := e.tryAcquire(s, name, owner, ttl)
	if err != nil {
		e.Fatalf("acquire %q for %q: %v", name, owner, err)
	}
	return h
}

func (e *env) tryRenew(s lease.Store, g lease.Grant, ttl time.Duration) (held, error) {
	e.Helper()
	h, err := e.grant("renew "+g.Name+" for "+g.Owner, g.Name, g.Owner, ttl, func(ctx context.Context) (lease.Grant, error) {
		return s.Renew(ctx, g, ttl)
	})
	if err == nil && h.Token != g.Token {
		e.Errorf("renew %q: token %d, want the old one, %d", g.Name, h.Token, g.Token)
	}
	return h, err
}

// renew is for a grant that is live.
func (e *env) renew(s lease.Store, g lease.Grant, ttl time.Duration) held {
	e.Helper()
	h, err := e.tryRenew(s, g, ttl)
	if err != nil {
		e.Fatalf("renew %q with token %d: %v", g.Name, g.Token, err)
	}
	return h
}

func (e *env) release(s lease.Store, g lease.Grant) {
	e.Helper()
	err := e.call("release "+g.Name, func(ctx context.Context) error { return s.Release(ctx, g) })
	if err != nil {
		e.Fatalf("release %q with token %d: %v", g.Name, g.Token, err)
	}
}

// takeOver acquires for owner as soon as the store allows it, which must not
// be earlier than the promise that old was (G3), with a larger token (G2).
func (e *env) takeOver(s lease.Store, old held, owner string, ttl time.Duration) held {
	e.Helper()
	var h held
	e.poll("take "+old.Name+" over", func() bool {
		var err error
		h, err = e.tryAcquire(s, old.Name, owner, ttl)
		if err != nil && !errors.Is(err, lease.ErrHeld) {
			e.Fatalf("acquire %q for %q: %v", old.Name, owner, err)
		}
		return err == nil
	})
	if lasted := h.got.Sub(old.sent); lasted < old.TTL {
		e.Errorf("%q was granted to %q %v after it had been requested by %q for %v (G3)",
			old.Name, owner, lasted, old.Owner, old.TTL)
	}
	if err := old.Check(); err == nil {
		e.Errorf("%q was granted to %q while %q still believes in its grant (G4)", old.Name, owner, old.Owner)
	}
	e.larger(h.Grant, old.Grant)
	return h
}

// free reports whether the store says that the grant g has ended, as far as it
// can be asked without changing anything. Otherwise the local clock must do.
func (e *env) free(s lease.Store, g held) bool {
	e.Helper()
	i, ok := s.(lease.Inspector)
	if !ok {
		return time.Since(g.sent) > 2*g.TTL
	}
	r, err := e.get(i, g.Name)
	if err != nil && !errors.Is(err, lease.ErrNotFound) {
		e.Fatalf("get %q: %v", g.Name, err)
	}
	return err != nil || r.Token != g.Token
}

func (e *env) get(i lease.Inspector, name string) (lease.Record, error) {
	e.Helper()
	var r lease.Record
	err := e.call("get "+name, func(ctx context.Context) (err error) {
		r, err = i.Get(ctx, name)
		return err
	})
	return r, err
}
