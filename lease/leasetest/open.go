package leasetest

import (
	"context"
	"errors"
	"fmt"

	"github.com/raftlease/raftlease/lease"
)

var openCases = []one{
	{"G2 tokens rise across re-opening", reopen, tokensRiseAcrossReopen},
	{"G5 data is kept across re-opening", reopen | dataStore | inspector, dataKeptAcrossReopen},
	{"a closed store says that it is closed", closes, closedSaysSo},
}

func tokensRiseAcrossReopen(e *env) {
	s := e.suite.Open(e.TB)
	const names = 3
	last := make([]held, names)
	for round := range 3 {
		for i := range names {
			name := e.name(fmt.Sprint("kept ", i))
			if last[i].Token != 0 {
				e.release(s, last[i].Grant) // in the first life or in the next
			}
			g := e.acquire(s, name, fmt.Sprint("owner ", round), e.long)
			e.larger(g.Grant, last[i].Grant)
			if i != 0 {
				e.release(s, g.Grant)
			}
			last[i] = g
		}
		s = e.suite.Reopen(e.TB, s)
	}
}

func dataKeptAcrossReopen(e *env) {
	s := e.suite.Open(e.TB)
	g := e.acquire(s, e.name("data"), "a", e.long)
	e.put(s, g.Grant, []byte("kept"))
	s = e.suite.Reopen(e.TB, s)
	e.hasData(s, g.Name, "kept", g.Token)
}

func closedSaysSo(e *env) {
	s := e.suite.Open(e.TB)
	g := e.acquire(s, e.name("closed"), "a", e.long)
	c, ok := s.(interface{ Close() error })
	if !ok {
		e.Fatalf("Suite.Closes is true, but %T has no method Close() error", s)
	}
	waiting := make(chan error, 1)
	if w, ok := s.(lease.Waiter); ok {
		go func() {
			_, err := w.AcquireWait(context.Background(), g.Name, "b", e.long)
			waiting <- err
		}()
	} else {
		waiting <- lease.ErrClosed
	}
	for range 2 {
		if err := c.Close(); err != nil {
			e.Errorf("close: %v", err)
		}
	}
	if err := <-waiting; !errors.Is(err, lease.ErrClosed) {
		e.Errorf("a waiter of a store that was closed: error %v, want lease.ErrClosed", err)
	}
	_, acquire := s.Acquire(context.Background(), g.Name, "a", e.long)
	_, renew := s.Renew(context.Background(), g.Grant, e.long)
	release := s.Release(context.Background(), g.Grant)
	for what, err := range map[string]error{"acquire": acquire, "renew": renew, "release": release} {
		if !errors.Is(err, lease.ErrClosed) {
			e.Errorf("%s on a closed store: error %v, want lease.ErrClosed", what, err)
		}
	}
}
