package fence

import (
	"context"
	"fmt"
	"sync"
)

// lane puts the acts under one lease into the order of their tokens.
type lane struct {
	users int // guarded by Gate.mu

	mu      sync.Mutex
	highest uint64        // that wanted in
	inside  uint64        // the token of the acts that are in
	acts    int           // that are in
	stop    []func()      // ends the contexts of those
	changed chan struct{} // closed and replaced when one that waits should look again
}

func newLane() *lane { return &lane{changed: make(chan struct{})} }

// enter waits until only acts with the same token are in, and adds one, whose
// context cancel ends when a larger token comes.
func (l *lane) enter(ctx context.Context, name string, token uint64, cancel context.CancelCauseFunc) error {
	for {
		in, wait := l.tryEnter(name, token, cancel)
		switch {
		case in:
			return nil
		case wait == nil:
			return &StaleError{Name: name, Token: token, Highest: l.seen()}
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return fmt.Errorf("wait for acts with smaller tokens of lease %q: %w", name, context.Cause(ctx))
		}
	}
}

// tryEnter returns whether the act is in, or what to wait for; nil if its token
// is stale.
func (l *lane) tryEnter(name string, token uint64, cancel context.CancelCauseFunc) (in bool, wait <-chan struct{}) {
	l.mu.Lock()
	var stop []func()
	defer func() {
		l.mu.Unlock()
		for _, f := range stop {
			f()
		}
	}()
	if token < l.highest {
		return false, nil
	}
	if token > l.highest {
		l.highest = token
		stop, l.stop = l.stop, nil
		l.wake()
	}
	if l.acts > 0 && l.inside != token {
		return false, l.changed
	}
	l.inside = token
	l.acts++
	l.stop = append(l.stop, func() { cancel(&StaleError{Name: name, Token: token, Highest: l.seen()}) })
	return true, nil
}

func (l *lane) seen() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.highest
}

// exit takes one act out.
func (l *lane) exit() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.acts--; l.acts == 0 {
		l.stop = nil
		l.wake()
	}
}

// wake lets all that wait look again. l.mu is held.
func (l *lane) wake() {
	close(l.changed)
	l.changed = make(chan struct{})
}
