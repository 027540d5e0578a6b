package leasetest

import (
	"context"
	"fmt"
	"time"

	"github.com/raftlease/raftlease/lease"
)

var deadlineCases = []one{
	{"G4 a deadline is anchored before the request is sent", 0, anchoredBeforeSending},
	{"G4 a renewal's deadline is anchored before the request is sent", 0, renewalAnchored},
	{"G4 a grant runs out by the local clock alone", 0, runsOutAlone},
}

const (
	anchorTries = 20
	// slowCall is long against what can lie between the test's reading of the
	// clock and the store's, unless the test is not running at all.
	slowCall = time.Millisecond
)

func anchoredBeforeSending(e *env) {
	e.anchored(func(i int) held {
		return e.acquire(e.store(i), e.name(fmt.Sprint("anchored ", i)), "a", e.long)
	})
}

func renewalAnchored(e *env) {
	g := e.acquire(e.store(0), e.name("anchored"), "a", e.long)
	e.anchored(func(i int) held { return e.renew(e.store(i), g.Grant, e.long) })
}

// anchored works out from what remains of a grant at which moment of its call
// the deadline was anchored. A store anchors right at the start; that a call
// spent half of its time before that, every time, cannot be chance.
func (e *env) anchored(call func(i int) held) {
	e.Helper()
	latest := time.Duration(0)
	for i := range anchorTries {
		h := call(i)
		took := h.got.Sub(h.sent)
		now := time.Now()
		anchor := now.Add(h.Remaining() - lease.Shorter(h.TTL)) // or earlier
		if took < slowCall || anchor.Before(h.sent.Add(took/2)) {
			return
		}
		latest = max(latest, anchor.Sub(h.sent))
	}
	e.Errorf("in each of %d calls the deadline was anchored late, up to %v after the call began (G4)", anchorTries, latest)
}

func runsOutAlone(e *env) {
	g := e.acquire(e.store(0), e.name("runs out"), "a", e.short)
	e.passed(g.sent, e.short)
	if err := g.Check(); err == nil {
		// The anchor is later than sent by what the call took to begin.
		e.passed(g.got, e.short)
		if err = g.Check(); err == nil {
			e.Errorf("a grant is good %v after the answer, its ttl being %v (G4)", time.Since(g.got), e.short)
		}
	}
	e.release(e.store(0), g.Grant)
	if _, err := e.store(0).Renew(context.Background(), g.Grant, e.short); err == nil {
		e.Errorf("a released grant was renewed")
	}
	if g.Check() == nil {
		e.Errorf("a grant that was over is good again")
	}
}
