package leasetest

import (
	"context"
	"errors"
	"fmt"

	"github.com/raftlease/raftlease/lease"
)

var contextCases = []one{
	{"G6 an acquire whose context has ended grants nothing", 0, endedAcquire},
	{"G6 a renewal or release whose context has ended ends nothing", 0, endedRenewAndRelease},
	{"G6 reads and writes whose context has ended say so", 0, endedOthers},
	{"G6 contexts that end during calls leave a state that retries mend", 0, endedMidway},
}

// ended returns a context that has ended with errStopped as the cause.
func ended() context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errStopped)
	return ctx
}

// stopped checks the error of a call whose context ended with errStopped.
func (e *env) stopped(what string, err error) {
	e.Helper()
	if !errors.Is(err, errStopped) {
		e.Errorf("%s: error %v, want one that wraps the context's cause %q (G6)", what, err, errStopped)
	}
	if !errors.Is(err, lease.ErrUnavailable) && !errors.Is(err, lease.ErrUnknownOutcome) {
		e.Errorf("%s: error %v, want ErrUnavailable or ErrUnknownOutcome (G6)", what, err)
	}
	if errors.Is(err, lease.ErrHeld) || errors.Is(err, lease.ErrLost) || errors.Is(err, lease.ErrInvalid) {
		e.Errorf("%s: error %v is a refusal as well (G6)", what, err)
	}
}

func endedAcquire(e *env) {
	name := e.name("not granted")
	g, err := e.store(0).Acquire(ended(), name, "a", e.long)
	e.stopped("acquire", err)
	if g != (lease.Grant{}) {
		e.Errorf("acquire: grant %+v together with an error", g)
	}
	if errors.Is(err, lease.ErrUnknownOutcome) {
		e.release(e.store(0), e.acquire(e.store(0), name, "a", e.long).Grant)
	}
	e.acquire(e.store(1), name, "b", e.long) // unavailable means that nothing was done
}

func endedRenewAndRelease(e *env) {
	g := e.acquire(e.store(0), e.name("stays"), "a", e.long)
	_, err := e.store(0).Renew(ended(), g.Grant, 2*e.long)
	e.stopped("renew", err)
	e.refused(e.store(1), g)
	err = e.store(0).Release(ended(), g.Grant)
	e.stopped("release", err)
	if errors.Is(err, lease.ErrUnavailable) && !errors.Is(err, lease.ErrUnknownOutcome) {
		e.refused(e.store(1), g)
		e.renew(e.store(0), g.Grant, e.long)
	}
}

func endedOthers(e *env) {
	g := e.acquire(e.store(0), e.name("others"), "a", e.long)
	if w, ok := e.store(0).(lease.Waiter); ok {
		_, err := w.AcquireWait(ended(), e.name("not granted"), "a", e.long)
		e.stopped("acquire and wait", err)
	}
	if d, ok := e.store(0).(lease.DataStore); ok {
		e.stopped("put", d.Put(ended(), g.Grant, []byte("x")))
	}
	if i, ok := e.store(0).(lease.Inspector); ok {
		_, err := i.Get(ended(), g.Name)
		e.stopped("get", err)
		_, err = i.List(ended(), e.prefix)
		e.stopped("list", err)
	}
	if w, ok := e.store(0).(lease.Watcher); ok {
		e.stopped("watch", w.Watch(ended(), e.prefix, 0, func(lease.Event) error { return nil }))
	}
	e.refused(e.store(1), g)
}

func endedMidway(e *env) {
	for i := range 32 {
		name := e.name(fmt.Sprint("midway ", i))
		ctx, cancel := context.WithCancelCause(context.Background())
		go cancel(errStopped)
		g, err := e.store(i).Acquire(ctx, name, "a", e.long)
		<-ctx.Done()
		if err != nil {
			e.stopped("acquire", err)
		}
		again := e.acquire(e.store(i), name, "a", e.long)
		if err == nil && again.Token != g.Token {
			e.Errorf("%q: token %d, want that of the call before, %d", name, again.Token, g.Token)
		}
		e.refused(e.store(i+1), again)

		ctx, cancel = context.WithCancelCause(context.Background())
		go cancel(errStopped)
		err = e.store(i).Release(ctx, again.Grant)
		<-ctx.Done()
		if err != nil {
			e.stopped("release", err)
			e.release(e.store(i), again.Grant)
		}
		e.larger(e.acquire(e.store(i+1), name, "b", e.long).Grant, again.Grant)
	}
}
