package client_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/raftlease/raftlease/client"
	"github.com/raftlease/raftlease/lease"
)

// lostGrant is a waiter that is granted the name when nobody listens any more.
type lostGrant struct {
	*member
	client  *client.Client
	granted chan struct{} // closed when the store granted the name
	leave   context.CancelCauseFunc
	done    chan error

	mu    sync.Mutex
	verbs []string // that arrived since the waiter left
	slow  string   // a verb that is held up
}

// waitInVain parks a waiter of the owner "waiter" for "x", grants it the name and
// holds the answer back until leave.
func waitInVain(t *testing.T) *lostGrant {
	l := &lostGrant{granted: make(chan struct{}), done: make(chan error, 1)}
	parked := make(chan struct{})
	l.member = start(t, newStore(t), func(m *member) {
		m.intercept = func(_ context.Context, verb string) error {
			if verb == "wait" {
				close(parked)
			}
			l.mu.Lock()
			defer l.mu.Unlock()
			l.verbs = append(l.verbs, verb)
			if verb == l.slow {
				<-time.After(slow)
			}
			return nil
		}
		m.answer = func(ctx context.Context, verb string) error {
			if verb == "wait" {
				close(l.granted)
				<-ctx.Done()
			}
			return nil
		}
	})
	held, err := l.store.Acquire(bg, "x", "holder", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	l.client = dial(t, client.Config{}, l.addr)
	ctx, leave := context.WithCancelCause(within(t))
	l.leave = leave
	go func() {
		_, err := l.client.AcquireWait(ctx, "x", "waiter", time.Minute)
		l.done <- err
	}()
	<-parked
	if err := l.store.Release(bg, held); err != nil {
		t.Fatal(err)
	}
	<-l.granted
	return l
}

// leaves ends the waiter's ctx.
func (l *lostGrant) leaves(t *testing.T) {
	t.Helper()
	l.mu.Lock()
	l.verbs = nil
	l.mu.Unlock()
	l.leave(errEnough)
	if err := <-l.done; !errors.Is(err, lease.ErrUnknownOutcome) || !errors.Is(err, errEnough) {
		t.Errorf("wait: %v, want ErrUnknownOutcome and the cause", err)
	}
}

func (l *lostGrant) seen() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.verbs)
}

// Case 19: the dead are not granted anything, or not for long.
func TestClient_WaiterThatLeftReleasesItsGrant(t *testing.T) {
	l := waitInVain(t)
	l.leaves(t)
	l.client.Close() // waits for it
	if r, err := l.store.Get(bg, "x"); !errors.Is(err, lease.ErrNotFound) {
		t.Errorf("the name is still held: %+v, %v", r, err)
	}
}

// G3: a grant that another call has returned is not taken away.
func TestClient_WaiterThatLeftKeepsAGrantInUse(t *testing.T) {
	l := waitInVain(t)
	g, err := l.client.Acquire(within(t), "x", "waiter", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	l.leaves(t)
	l.client.Close()
	if r, err := l.store.Get(bg, "x"); err != nil || r.Token != g.Token {
		t.Errorf("got %+v, %v, want token %d live", r, err, g.Token)
	}
}

// G3: neither is one from before the wait, such as another client's.
func TestClient_WaiterThatLeftKeepsAnOlderGrant(t *testing.T) {
	ctx, cancel := context.WithCancelCause(within(t))
	m := start(t, newStore(t), heldStore(t), func(m *member) {
		m.answer = func(ctx context.Context, verb string) error {
			cancel(errEnough)
			<-ctx.Done()
			return nil
		}
	})
	c := dial(t, client.Config{}, m.addr)
	_, err := c.AcquireWait(ctx, "x", "a", time.Minute)
	endedAs(t, err, lease.ErrUnknownOutcome)
	c.Close()
	if r, err := m.store.Get(bg, "x"); err != nil || r.Token != someGrant.Token {
		t.Errorf("got %+v, %v, want token %d live", r, err, someGrant.Token)
	}
}

// G3: an acquire does not get a grant that is about to be released.
func TestClient_AcquireWaitsForWhatAWaiterLeft(t *testing.T) {
	l := waitInVain(t)
	l.mu.Lock()
	l.slow = "release"
	l.mu.Unlock()
	left, err := l.store.Get(bg, "x")
	if err != nil {
		t.Fatal(err)
	}
	l.leaves(t)
	g, err := l.client.Acquire(within(t), "x", "waiter", time.Minute)
	if err != nil || g.Token <= left.Token {
		t.Errorf("acquire: token %d, %v, want one above %d", g.Token, err, left.Token)
	}
	if got, want := l.seen(), []string{"get", "release", "acquire"}; !slices.Equal(got, want) {
		t.Errorf("the member saw %q, want %q", got, want)
	}
	l.client.Close()
	if r, err := l.store.Get(bg, "x"); err != nil || r.Token != g.Token {
		t.Errorf("got %+v, %v, want token %d live", r, err, g.Token)
	}
}
