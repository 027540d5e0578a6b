package fence

import (
	"context"
	"fmt"
	"sync"
)

// Gate lets acts at a resource pass by their token. Safe for concurrent use.
type Gate struct {
	marks Marks

	mu    sync.Mutex
	lanes map[string]*lane // by lease name; only those in use
}

// NewGate returns a gate on marks. Several gates may share marks, also in
// different processes; each lets pass what is not below the highest token that
// any of them has seen.
func NewGate(marks Marks) *Gate {
	if marks == nil {
		panic("fence: NewGate without marks")
	}
	return &Gate{marks: marks, lanes: map[string]*lane{}}
}

// Check admits token for one act under the lease name, and raises the mark to
// it. It returns a *StaleError when a larger token was seen, a
// *lease.InvalidError for what no lease has, and the error of the marks, after
// which the act must not be done.
//
// Between Check and the act one with a larger token can come first. Do rules
// that out.
func (g *Gate) Check(ctx context.Context, name string, token uint64) error {
	if err := check(name, token); err != nil {
		return fmt.Errorf("check fencing token: %w", err)
	}
	mark, err := g.marks.Raise(ctx, name, token)
	if err != nil {
		return fmt.Errorf("raise fencing mark of lease %q to %d: %w", name, token, err)
	}
	if mark > token {
		return &StaleError{Name: name, Token: token, Highest: mark}
	}
	return nil
}

// Do runs act if token is not stale, and returns its error. Acts with the same
// token run side by side. One with a larger token ends the context of those with
// smaller ones, with a *StaleError as the cause, and begins when they have
// returned; none with a smaller token begins after it. The order of acts is kept
// within this gate; gates that share marks share no more than those.
//
// While it waits, the end of ctx ends it. The other errors are those of Check.
func (g *Gate) Do(ctx context.Context, name string, token uint64, act func(context.Context) error) error {
	if err := check(name, token); err != nil {
		return fmt.Errorf("check fencing token: %w", err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	l := g.use(name)
	defer g.leave(name, l)
	if err := l.enter(ctx, name, token, cancel); err != nil {
		return err
	}
	defer l.exit()
	// Only here, where no other token can come between the check and the act.
	if err := g.Check(ctx, name, token); err != nil {
		return err
	}
	return act(ctx)
}

// use returns the lane of name, which leave gives back.
func (g *Gate) use(name string) *lane {
	g.mu.Lock()
	defer g.mu.Unlock()
	l := g.lanes[name]
	if l == nil {
		l = newLane()
		g.lanes[name] = l
	}
	l.users++
	return l
}

func (g *Gate) leave(name string, l *lane) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if l.users--; l.users == 0 {
		delete(g.lanes, name)
	}
}
