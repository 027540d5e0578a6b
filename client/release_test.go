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

// halfReleased is a client whose release got no answer and was not carried out,
// or not yet.
func halfReleased(t *testing.T) (c *client.Client, m *member, seen func() []string, old lease.Grant) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(within(t))
	var mu sync.Mutex
	var verbs []string
	m = start(t, newStore(t), func(m *member) {
		m.intercept = func(ctx context.Context, verb string) error {
			mu.Lock()
			verbs = append(verbs, verb)
			first := len(verbs) == 2
			mu.Unlock()
			if first {
				cancel(errEnough)
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		}
	})
	c = dial(t, client.Config{}, m.addr)
	old, err := c.Acquire(bg, "x", "a", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	endedAs(t, c.Release(ctx, old), lease.ErrUnknownOutcome)
	return c, m, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(verbs)
	}, old
}

// G3: a release that may still be on its way would end what the same owner
// acquires next, if that were the same grant.
func TestClient_AcquireSettlesAReleaseOfUnknownOutcome(t *testing.T) {
	for name, acquire := range map[string]func(c *client.Client) (lease.Grant, error){
		"acquire": func(c *client.Client) (lease.Grant, error) { return c.Acquire(bg, "x", "a", time.Minute) },
		"wait":    func(c *client.Client) (lease.Grant, error) { return c.AcquireWait(bg, "x", "a", time.Minute) },
	} {
		t.Run(name, func(t *testing.T) {
			c, m, seen, old := halfReleased(t)
			g, err := acquire(c)
			if err != nil || g.Token <= old.Token {
				t.Fatalf("acquire: token %d, %v, want one above %d", g.Token, err, old.Token)
			}
			if got, want := seen(), []string{"acquire", "release", "release", "acquire"}; !slices.Equal(got, want) {
				t.Errorf("the member saw %q, want %q", got, want)
			}
			if err := m.store.Release(bg, old); err != nil { // the late one
				t.Fatal(err)
			}
			if _, err := c.Renew(bg, g, time.Minute); err != nil {
				t.Errorf("after the late release: %v", err)
			}
		})
	}
}

func TestClient_ReleaseSettlesItself(t *testing.T) {
	c, _, seen, old := halfReleased(t)
	if err := c.Release(bg, old); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Acquire(bg, "x", "a", time.Minute); err != nil {
		t.Fatal(err)
	}
	if got, want := seen(), []string{"acquire", "release", "release", "acquire"}; !slices.Equal(got, want) {
		t.Errorf("the member saw %q, want %q", got, want)
	}
}

// G6: the acquire itself was not sent.
func TestClient_AcquireBehindAnUnsettledReleaseIsUnavailable(t *testing.T) {
	c, m, _, _ := halfReleased(t)
	m.stop(t)
	ctx, cancel := context.WithTimeout(bg, slow)
	defer cancel()
	_, err := c.Acquire(ctx, "x", "a", time.Minute)
	if !errors.Is(err, lease.ErrUnavailable) || errors.Is(err, lease.ErrUnknownOutcome) {
		t.Errorf("got %v, want ErrUnavailable", err)
	}
}
