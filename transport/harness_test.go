package transport

import (
	"net"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// limit is generous: it only ends tests that hang.
const limit = 30 * time.Second

// noLeak checks at the end of the test that no goroutine is left.
func noLeak(t testing.TB) {
	t.Helper()
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
}

// listen opens a Mux on a loopback port, which closes with the test.
func listen(t testing.TB, cfg Config) *Mux {
	t.Helper()
	if cfg.Addr == "" {
		cfg.Addr = "127.0.0.1:0"
	}
	m, err := Listen(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return m
}

// join makes m a node of cluster c1.
func join(t testing.TB, m *Mux, id string, address func(string) (string, bool)) *Raft {
	t.Helper()
	r := NewRaft(m, RaftConfig{Cluster: "c1", ID: id, Advertise: m.Addr().String(), Address: address})
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Errorf("Close of raft: %v", err)
		}
	})
	return r
}

// connect opens a connection to m whose reads and writes end.
func connect(t testing.TB, m *Mux) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", m.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(limit))
	return c
}

// say writes to c.
func say(t testing.TB, c net.Conn, b []byte) {
	t.Helper()
	if _, err := c.Write(b); err != nil {
		t.Fatal(err)
	}
}

// reply reads a handshake's answer.
func reply(t testing.TB, c net.Conn) (Refusal, string) {
	t.Helper()
	why, reason, err := readReply(c)
	if err != nil {
		t.Fatal(err)
	}
	return why, reason
}

// ended waits until the other side has closed c.
func ended(t testing.TB, c net.Conn) {
	t.Helper()
	c.SetReadDeadline(time.Now().Add(limit))
	_, err := c.Read(make([]byte, 1))
	if e, ok := err.(net.Error); err == nil || ok && e.Timeout() {
		t.Errorf("got %v, want the end of the connection", err)
	}
}

// await waits for a channel.
func await[T any](t testing.TB, what string, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(limit):
		t.Fatalf("no %s within %v", what, limit)
		panic("unreachable")
	}
}

// until waits for a condition.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	end := time.After(limit)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("no %s within %v", what, limit)
		}
	}
}
