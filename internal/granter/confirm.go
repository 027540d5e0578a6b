package granter

import (
	"context"
	"errors"
	"sync"
	"time"
)

// errUnconfirmed means that no majority of voters said in time that the term is
// still the highest they promised. Nothing was decided; try again, here or at
// the next leader.
var errUnconfirmed = errors.New("leadership is not confirmed by a majority")

// Quorum asks voters whether term is still the highest one they promised.
type Quorum interface {
	// Confirm returns nil when a majority of the voters of the configuration
	// that was the latest at some moment after the call said so, each in answer
	// to a message sent after the call.
	Confirm(ctx context.Context, term uint64) error
}

// confirmer runs confirm rounds, one at a time, each for everybody who came
// before it began. A round thus always starts after what its callers did before
// they joined, which is the whole point of it (docs/DESIGN.md, rule 1).
type confirmer struct {
	quorum Quorum
	term   uint64
	limit  time.Duration // of one round
	ctx    context.Context
	wg     sync.WaitGroup

	mu      sync.Mutex
	next    *round // gathers callers; nil when nobody waits
	running bool
	closed  bool
}

type round struct {
	done chan struct{}
	err  error // set before done is closed
}

// join waits for a round that begins after the call. Any error means that
// nothing is known.
func (c *confirmer) join(ctx context.Context) error {
	r := c.enter()
	if r == nil {
		return errOver
	}
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-c.ctx.Done():
		return context.Cause(c.ctx)
	}
}

// close takes no more callers and waits for the last round.
func (c *confirmer) close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.wg.Wait()
}

// enter returns the round that begins next, nil after close.
func (c *confirmer) enter() *round {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil
	}
	if c.next == nil {
		c.next = &round{done: make(chan struct{})}
	}
	if !c.running {
		c.running = true
		c.wg.Go(c.run)
	}
	return c.next
}

func (c *confirmer) run() {
	for {
		c.mu.Lock()
		r := c.next
		c.next = nil
		c.running = r != nil
		c.mu.Unlock()
		if r == nil {
			return
		}
		ctx, cancel := context.WithTimeout(c.ctx, c.limit)
		r.err = c.quorum.Confirm(ctx, c.term)
		cancel()
		close(r.done)
	}
}
