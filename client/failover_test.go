package client_test

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/raftlease/raftlease/client"
	"github.com/raftlease/raftlease/lease"
)

// dead returns an address at which nobody listens.
func dead(t testing.TB) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ln.Close()
	return ln.Addr().String()
}

// frozen returns the address of a process that is stopped: its kernel takes
// connections, and nobody answers.
func frozen(t testing.TB) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	return ln.Addr().String()
}

// within is a context of generous time.
func within(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(bg, generous)
	t.Cleanup(cancel)
	return ctx
}

func TestClient_GoesOnAtTheNextMember(t *testing.T) {
	const unreachable = "198.51.100.1:7000" // connecting there takes for ever
	for name, first := range map[string]string{
		"when one is down":           dead(t),
		"when one does not answer":   frozen(t),
		"when one cannot be reached": unreachable,
	} {
		t.Run(name, func(t *testing.T) {
			m := start(t, newStore(t))
			var dials atomic.Int64
			c := dial(t, client.Config{AttemptTimeout: 200 * time.Millisecond, Dial: func(ctx context.Context, addr string) (net.Conn, error) {
				if addr == first {
					dials.Add(1)
				}
				if addr == unreachable {
					<-ctx.Done()
					return nil, ctx.Err()
				}
				var d net.Dialer
				return d.DialContext(ctx, "tcp", addr)
			}}, first, m.addr)
			ctx := within(t)
			g, err := c.Acquire(ctx, "x", "a", time.Minute)
			if err != nil {
				t.Fatalf("acquire: %v", err)
			}
			asked := dials.Load()
			if asked == 0 {
				t.Fatal("the first member was not asked")
			}
			if _, err := c.Renew(ctx, g, time.Minute); err != nil {
				t.Errorf("renew: %v", err)
			}
			if _, err := c.AcquireWait(ctx, "x", "a", time.Minute); err != nil {
				t.Errorf("wait: %v", err)
			}
			if err := c.Release(ctx, g); err != nil {
				t.Errorf("release: %v", err)
			}
			if n := dials.Load(); n != asked {
				t.Errorf("the first member was asked %d times, want %d: the other one answered", n, asked)
			}
		})
	}
}

func TestClient_ComesBackWhenAMemberDies(t *testing.T) {
	store := newStore(t)
	a, b := start(t, store), start(t, store)
	c := dial(t, client.Config{}, a.addr, b.addr)
	g, err := c.Acquire(within(t), "x", "a", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	a.stop(t)
	again, err := c.Acquire(within(t), "x", "a", time.Minute)
	if err != nil || again.Token != g.Token {
		t.Errorf("acquire at the other member: token %d, %v, want %d", again.Token, err, g.Token)
	}
}

// A waiting acquire has no attempt timeout; a member that dies under it has to
// be noticed all the same.
func TestClient_WaitGoesOnAtTheNextMember(t *testing.T) {
	store := newStore(t)
	parked := make(chan struct{}, 2)
	waits := func(m *member) {
		m.intercept = func(_ context.Context, verb string) error {
			if verb == "wait" {
				parked <- struct{}{}
			}
			return nil
		}
	}
	a, b := start(t, store, waits), start(t, store, waits)
	c := dial(t, client.Config{AttemptTimeout: time.Second}, a.addr, b.addr)
	held, err := store.Acquire(bg, "x", "holder", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		g, err := c.AcquireWait(within(t), "x", "waiter", time.Minute)
		if err == nil && g.Token <= held.Token {
			err = errors.New("the token did not rise")
		}
		done <- err
	}()
	<-parked
	a.stop(t)
	<-parked
	if err := store.Release(bg, held); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Errorf("wait: %v", err)
	}
}

// G6: what cannot have left this process was not done.
func TestClient_NotSentIsUnavailable(t *testing.T) {
	for name, connect := range map[string]func(ctx context.Context) error{
		"refused":            func(context.Context) error { return errors.New("connection refused") },
		"nobody picks up":    func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
		"cut during connect": func(ctx context.Context) error { return context.DeadlineExceeded },
	} {
		t.Run(name, func(t *testing.T) {
			c := dial(t, client.Config{Dial: func(ctx context.Context, _ string) (net.Conn, error) {
				return nil, connect(ctx)
			}}, "192.0.2.1:1", "192.0.2.2:1")
			ctx, cancel := context.WithTimeout(bg, 150*time.Millisecond)
			defer cancel()
			_, err := c.Acquire(ctx, "x", "a", time.Minute)
			if !errors.Is(err, lease.ErrUnavailable) || errors.Is(err, lease.ErrUnknownOutcome) || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v, want ErrUnavailable and the ctx's end", err)
			}
		})
	}
}

// A watch has no attempt timeout either; connecting has.
func TestClient_WatchGoesOnWhenAMemberCannotBeReached(t *testing.T) {
	m := start(t, newStore(t))
	c := dial(t, client.Config{AttemptTimeout: slow, Dial: func(ctx context.Context, addr string) (net.Conn, error) {
		if addr != m.addr {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	}}, "198.51.100.1:7000", m.addr)
	err := c.Watch(within(t), "", 0, func(lease.Event) error { return errEnough })
	if err != errEnough {
		t.Errorf("watch: %v", err)
	}
}

func TestClient_PausesWhenNobodyCanBeReached(t *testing.T) {
	var dials atomic.Int64
	c := dial(t, client.Config{Dial: func(context.Context, string) (net.Conn, error) {
		dials.Add(1)
		return nil, errors.New("refused")
	}}, "192.0.2.1:1", "192.0.2.2:1")
	ctx, cancel := context.WithTimeout(bg, 200*time.Millisecond)
	defer cancel()
	if _, err := c.Get(ctx, "x"); !errors.Is(err, lease.ErrUnavailable) {
		t.Errorf("get: %v", err)
	}
	// The shortest pause is 5 ms, after both were tried.
	if n := dials.Load(); n < 2 || n > 100 {
		t.Errorf("%d dials in 200ms, want both members tried, with pauses", n)
	}
}
