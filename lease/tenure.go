package lease

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// tenure is what this process knows of a grant that is being renewed. Whoever
// first sees that it is over, the keeper, a late answer or the job's own Check,
// ends it for all, for ever (rule 11).
type tenure struct {
	cancel context.CancelCauseFunc // of the job's context
	ended  chan struct{}           // closed when over is set
	free   bool                    // Job.Disabled: no lease, no deadline

	mu    sync.Mutex
	grant Grant // of the latest renewal, with the margin
	over  *LostError
	done  bool // over because the job has returned
}

func newTenure(g Grant, cancel context.CancelCauseFunc) *tenure {
	return &tenure{cancel: cancel, ended: make(chan struct{}), grant: g}
}

// handle returns the grant for the job.
func (t *tenure) handle() Grant {
	g := t.latest()
	g.tenure, g.hold = t, nil
	return g
}

// look ends t if its deadline has passed, and returns the time left and why t is
// over. t.mu is held.
func (t *tenure) look() (time.Duration, *LostError) {
	if t.over != nil {
		return 0, t.over
	}
	if t.free {
		return t.grant.TTL, nil
	}
	left := t.grant.Remaining()
	if left <= 0 {
		t.finish(t.lostBecause(ReasonExpired), false)
	}
	return left, t.over
}

// finish sets why t is over, once. t.mu is held; cancelling a context runs none
// of its callbacks in this goroutine.
func (t *tenure) finish(lost *LostError, done bool) {
	if t.over != nil {
		return
	}
	t.over, t.done = lost, done
	close(t.ended)
	if !done {
		t.cancel(lost)
	}
}

func (t *tenure) lostBecause(r Reason) *LostError {
	return &LostError{Name: t.grant.Name, Owner: t.grant.Owner, Token: t.grant.Token, Reason: r}
}

func (t *tenure) remaining() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	left, _ := t.look()
	return left
}

func (t *tenure) check() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, over := t.look(); over != nil {
		lost := *over
		return &lost
	}
	return nil
}

// snapshot returns the grant as it is now, which no longer follows renewals.
func (t *tenure) snapshot() Grant {
	t.mu.Lock()
	defer t.mu.Unlock()
	g := t.grant
	switch _, over := t.look(); {
	case t.free:
		g.tenure = t
	case over != nil && over.Reason != ReasonExpired:
		g.hold = nil
	}
	return g
}

// renewed takes the answer to a renewal. It is refused when t is over or when
// the answer moves nothing.
func (t *tenure) renewed(g Grant) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	left, over := t.look()
	switch {
	case over != nil:
		return over
	case g.Name != t.grant.Name || g.Owner != t.grant.Owner || g.Token != t.grant.Token:
		return fmt.Errorf("renew lease %q with token %d: the store answered with lease %q of %q with token %d",
			t.grant.Name, t.grant.Token, g.Name, g.Owner, g.Token)
	case g.Remaining() < left:
		return fmt.Errorf("renew lease %q: the answer came too late: %w", g.Name, ErrUnknownOutcome)
	}
	t.grant = g
	return nil
}

// refused ends t if err is a refusal, and returns whether it is one.
func (t *tenure) refused(err error) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	lost := t.lostBecause(ReasonGone)
	var told *LostError
	switch {
	case errors.As(err, &told):
		lost.Reason, lost.NewOwner, lost.NewToken = told.Reason, told.NewOwner, told.NewToken
	case errors.Is(err, ErrLost):
	case errors.Is(err, ErrClosed):
		lost.Reason = ReasonClosed
	default:
		return false
	}
	t.finish(lost, false)
	return true
}

// jobDone ends t because the job has returned, unless it is over already.
func (t *tenure) jobDone() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.look()
	t.finish(t.lostBecause(ReasonReleased), true)
}

// lost returns why the job lost the lease while it ran, or nil.
func (t *tenure) lost() *LostError {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over == nil || t.done {
		return nil
	}
	lost := *t.over
	return &lost
}

// latest returns the plain grant of the latest renewal.
func (t *tenure) latest() Grant {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.grant
}
