package client_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/raftlease/raftlease/client"
	"github.com/raftlease/raftlease/lease"
)

// counted counts connections that are open.
type counted struct {
	net.Conn
	once sync.Once
	open *atomic.Int64
}

func (c *counted) Close() error {
	c.once.Do(func() { c.open.Add(-1) })
	return c.Conn.Close()
}

func TestClient_CloseEndsEveryCall(t *testing.T) {
	var open atomic.Int64
	arrived := make(chan string, 16)
	m := start(t, newStore(t), heldStore(t), func(m *member) {
		m.intercept = func(ctx context.Context, verb string) error {
			arrived <- verb
			if verb != "wait" && verb != "watch" {
				<-ctx.Done()
			}
			return ctx.Err()
		}
	})
	c := dial(t, client.Config{Dial: func(ctx context.Context, addr string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
		if err == nil {
			open.Add(1)
			conn = &counted{Conn: conn, open: &open}
		}
		return conn, err
	}}, m.addr)
	all := append([]verb{{"watch", true, func(ctx context.Context, c *client.Client) error {
		return c.Watch(ctx, "", 0, func(lease.Event) error { return nil })
	}}, {"break", false, func(ctx context.Context, c *client.Client) error {
		_, _, err := c.Break(ctx, "x")
		return err
	}}}, verbs...)
	results := make([]chan error, len(all))
	for i, v := range all {
		results[i] = make(chan error, 1)
		go func() { results[i] <- v.call(bg, c) }()
	}
	for range len(all) - 1 { // break is none of the verbs that intercept sees
		<-arrived
	}
	var closing sync.WaitGroup
	for range 3 {
		closing.Go(func() {
			if err := c.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		})
	}
	closing.Wait()
	for i, v := range all {
		if v.name == "break" {
			continue // answered at once, or closed
		}
		err := <-results[i]
		if !errors.Is(err, lease.ErrClosed) || errors.Is(err, lease.ErrUnavailable) {
			t.Errorf("%s: %v, want ErrClosed", v.name, err)
		}
		if got, want := errors.Is(err, lease.ErrUnknownOutcome), !v.reads; got != want {
			t.Errorf("%s: %v, is of unknown outcome: %v, want %v (G6)", v.name, err, got, want)
		}
	}
	if n := open.Load(); n != 0 {
		t.Errorf("%d connections are open after Close", n)
	}
	for _, v := range all {
		err := v.call(bg, c)
		if !errors.Is(err, lease.ErrClosed) && v.name != "break" || errors.Is(err, lease.ErrUnknownOutcome) {
			t.Errorf("%s on a closed client: %v, want ErrClosed", v.name, err)
		}
	}
}

func TestClient_CloseEndsAWaiter(t *testing.T) {
	parked := make(chan struct{})
	m := start(t, newStore(t), func(m *member) {
		m.intercept = func(_ context.Context, verb string) error {
			if verb == "wait" {
				close(parked)
			}
			return nil
		}
	})
	if _, err := m.store.Acquire(bg, "x", "holder", time.Minute); err != nil {
		t.Fatal(err)
	}
	c := dial(t, client.Config{}, m.addr)
	done := make(chan error, 1)
	go func() {
		_, err := c.AcquireWait(bg, "x", "waiter", time.Minute)
		done <- err
	}()
	<-parked
	c.Close()
	if err := <-done; !errors.Is(err, lease.ErrClosed) {
		t.Errorf("wait: %v, want ErrClosed", err)
	}
	if r, err := m.store.Get(bg, "x"); err != nil || r.Owner != "holder" {
		t.Errorf("got %+v, %v, want the holder's grant", r, err)
	}
}

// A dial that ignores its context may come back when all is over.
func TestClient_ConnectionThatComesTooLateIsClosed(t *testing.T) {
	m := start(t, newStore(t))
	var open atomic.Int64
	dialling, goOn := make(chan struct{}), make(chan struct{})
	var returned sync.WaitGroup
	returned.Add(1)
	c := dial(t, client.Config{Dial: func(_ context.Context, addr string) (net.Conn, error) {
		defer returned.Done()
		close(dialling)
		<-goOn
		open.Add(1)
		conn, err := net.Dial("tcp", addr)
		return &counted{Conn: conn, open: &open}, err
	}}, m.addr)
	done := make(chan error, 1)
	go func() {
		_, err := c.Get(bg, "x")
		done <- err
	}()
	<-dialling
	c.Close()
	if err := <-done; !errors.Is(err, lease.ErrClosed) {
		t.Errorf("get: %v, want ErrClosed", err)
	}
	close(goOn)
	returned.Wait()
	until(t, "the late connection is closed", func() bool { return open.Load() == 0 })
}

// until waits for a condition.
func until(t testing.TB, what string, done func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(generous); !done(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("%s: not within %v", what, generous)
		}
	}
}
