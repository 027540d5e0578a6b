package transport

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestMux_BothProtocolsOnOnePort(t *testing.T) {
	noLeak(t)
	m := listen(t, Config{})
	join(t, m, "b", nil)
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.URL.Path) })}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(m.HTTP()) }()
	t.Cleanup(func() { srv.Close(); <-served })

	raftConn := connect(t, m)
	say(t, raftConn, appendHello(nil, hello{"c1", "a", "b"}))
	if why, reason := reply(t, raftConn); why != accepted {
		t.Errorf("raft: got refusal %d %q, want none", why, reason)
	}
	web := connect(t, m)
	fmt.Fprint(web, "GET /here HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	res, err := http.ReadResponse(bufio.NewReader(web), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if b, _ := io.ReadAll(res.Body); string(b) != "/here" {
		t.Errorf("HTTP: got %q, want /here", b)
	}

	// One side closed leaves the other alone.
	srv.Close()
	late := connect(t, m)
	say(t, late, []byte("GET"))
	ended(t, late)
	again := connect(t, m)
	say(t, again, appendHello(nil, hello{"c1", "a", "b"}))
	if why, _ := reply(t, again); why != accepted {
		t.Errorf("raft after HTTP was closed: got refusal %d, want none", why)
	}
}

func TestMux_RefusesInWords(t *testing.T) {
	noLeak(t)
	m := listen(t, Config{})
	meant := hello{"c1", "a", "b"}
	check := func(t *testing.T, greeting []byte, want Refusal, says string) {
		t.Helper()
		c := connect(t, m)
		say(t, c, greeting)
		if why, reason := reply(t, c); why != want || !strings.Contains(reason, says) {
			t.Errorf("got %d %q, want %d and a text with %q", why, reason, want, says)
		}
		if want != accepted {
			ended(t, c)
		}
	}
	t.Run("before NewRaft", func(t *testing.T) {
		check(t, appendHello(nil, meant), RefusedNotFormed, "not in a cluster yet")
	})
	r := join(t, m, "b", nil)
	t.Run("another cluster", func(t *testing.T) {
		check(t, appendHello(nil, hello{"c2", "a", "b"}), RefusedCluster, `"c1"`)
	})
	t.Run("another node", func(t *testing.T) { check(t, appendHello(nil, hello{"c1", "a", "d"}), RefusedNode, `"b"`) })
	t.Run("itself", func(t *testing.T) { check(t, appendHello(nil, hello{"c1", "b", "d"}), RefusedSelf, `"b" itself`) })
	t.Run("another version", func(t *testing.T) { check(t, []byte{magic, 99}, RefusedVersion, "99") })
	t.Run("an empty id", func(t *testing.T) { check(t, appendHello(nil, hello{"c1", "", "b"}), RefusedHello, "own id") })
	t.Run("nobody who is right", func(t *testing.T) { check(t, appendHello(nil, meant), accepted, "") })
	t.Run("after Close of raft", func(t *testing.T) {
		open := connect(t, m)
		say(t, open, appendHello(nil, meant))
		reply(t, open)
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		ended(t, open)
		check(t, appendHello(nil, meant), RefusedNotFormed, "not in a cluster yet")
	})
}

func TestMux_HelloTimeout(t *testing.T) {
	noLeak(t)
	m := listen(t, Config{HelloTimeout: 20 * time.Millisecond})
	join(t, m, "b", nil)
	for what, begin := range map[string][]byte{
		"silent":                nil,
		"half of a hello":       appendHello(nil, hello{"c1", "a", "b"})[:4],
		"a hello without magic": {magic},
	} {
		t.Run(what, func(t *testing.T) {
			c := connect(t, m)
			say(t, c, begin)
			io.Copy(io.Discard, c) // ends when the other side has closed
			until(t, "end of the list", func() bool { m.mu.Lock(); defer m.mu.Unlock(); return len(m.unknown) == 0 })
		})
	}
	// Who said what it is has no deadline any more.
	t.Run("not a raft connection that shook hands", func(t *testing.T) {
		c := connect(t, m)
		say(t, c, appendHello(nil, hello{"c1", "a", "b"}))
		reply(t, c)
		c.SetReadDeadline(time.Now().Add(5 * m.cfg.HelloTimeout))
		_, err := c.Read(make([]byte, 1))
		if e, ok := err.(net.Error); !ok || !e.Timeout() {
			t.Errorf("got %v, want silence", err)
		}
	})
	t.Run("not HTTP", func(t *testing.T) {
		c := connect(t, m)
		say(t, c, []byte("G"))
		s, err := m.HTTP().Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		got := make(chan string, 1)
		go func() {
			b := make([]byte, 3)
			n, err := io.ReadFull(s, b)
			got <- fmt.Sprint(string(b[:n]), err)
		}()
		timer := time.NewTimer(5 * m.cfg.HelloTimeout)
		defer timer.Stop()
		<-timer.C
		say(t, c, []byte("ET"))
		if b := await(t, "request", got); b != "GET<nil>" {
			t.Errorf("got %s, want GET", b)
		}
	})
}

func TestMux_MaxUnknown(t *testing.T) {
	noLeak(t)
	m := listen(t, Config{MaxUnknown: 2, HelloTimeout: limit})
	join(t, m, "b", nil)
	unknown := func(n int) func() bool {
		return func() bool { m.mu.Lock(); defer m.mu.Unlock(); return len(m.unknown) == n }
	}
	known := connect(t, m)
	say(t, known, appendHello(nil, hello{"c1", "a", "b"}))
	reply(t, known)
	first := connect(t, m)
	until(t, "first connection", unknown(1))
	second := connect(t, m)
	until(t, "second connection", unknown(2))
	third := connect(t, m)
	ended(t, first)
	for _, c := range []net.Conn{second, third} {
		say(t, c, appendHello(nil, hello{"c1", "a", "b"}))
		if why, reason := reply(t, c); why != accepted {
			t.Errorf("got %d %q, want no refusal", why, reason)
		}
	}
	known.SetReadDeadline(time.Now().Add(time.Millisecond))
	if _, err := known.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got %v, want that a connection which shook hands is left alone", err)
	}
}

func TestListen_Errors(t *testing.T) {
	noLeak(t)
	m := listen(t, Config{})
	busy := m.Addr().String()
	t.Run("a port that is taken", func(t *testing.T) {
		_, err := Listen(Config{Addr: busy})
		if !errors.Is(err, syscall.EADDRINUSE) || !strings.Contains(err.Error(), busy) || !strings.Contains(err.Error(), "choose another Addr") {
			t.Errorf("got %v, want address in use with %s and what to do", err, busy)
		}
	})
	for _, addr := range []string{"0.0.0.0:0", ":0", "[::]:0", "192.0.2.1:0", "example.com:0"} {
		t.Run("other machines can reach "+addr, func(t *testing.T) {
			m, err := Listen(Config{Addr: addr})
			if err == nil {
				m.Close()
			}
			if err == nil || !strings.Contains(err.Error(), "Insecure") || !strings.Contains(err.Error(), addr) {
				t.Errorf("got %v, want an error that names %s and Insecure", err, addr)
			}
		})
	}
	t.Run("a name that turns out to be public", func(t *testing.T) {
		_, err := Listen(Config{Addr: "localhost:0", Network: public{}})
		if err == nil || !strings.Contains(err.Error(), "Insecure") {
			t.Errorf("got %v, want an error that names Insecure", err)
		}
	})
	t.Run("Insecure allows it", func(t *testing.T) {
		listen(t, Config{Addr: "0.0.0.0:0", Insecure: true})
	})
	t.Run("localhost is allowed", func(t *testing.T) { listen(t, Config{Addr: "localhost:0"}) })
	t.Run("all faults at once", func(t *testing.T) {
		_, err := Listen(Config{Addr: "x", HelloTimeout: -1, MaxUnknown: -1})
		for _, field := range []string{"Addr", "HelloTimeout", "MaxUnknown"} {
			if err == nil || !strings.Contains(err.Error(), field) {
				t.Errorf("got %v, want an error that names %s", err, field)
			}
		}
	})
}

// public is a network whose localhost is everywhere.
type public struct{ tcp }

func (public) Listen(string) (net.Listener, error) { return TCP().Listen("0.0.0.0:0") }

func TestMux_Close(t *testing.T) {
	noLeak(t)
	m, err := Listen(Config{Addr: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	NewRaft(m, RaftConfig{Cluster: "c1", ID: "b", Advertise: m.Addr().String()})
	silent := connect(t, m)
	until(t, "silent connection", func() bool { m.mu.Lock(); defer m.mu.Unlock(); return len(m.unknown) == 1 })
	stream := connect(t, m)
	say(t, stream, appendHello(nil, hello{"c1", "a", "b"}))
	reply(t, stream)
	web := connect(t, m) // nobody accepts it
	say(t, web, []byte("GET"))
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []net.Conn{silent, stream, web} {
		ended(t, c)
	}
	if err := m.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
	if _, err := m.HTTP().Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v from Accept, want net.ErrClosed", err)
	}
	again, err := Listen(Config{Addr: m.Addr().String()})
	if err != nil {
		t.Fatalf("the port was not given back: %v", err)
	}
	again.Close()

	r := NewRaft(m, RaftConfig{Cluster: "c1", ID: "b", Advertise: m.Addr().String()})
	if !r.IsShutdown() {
		t.Error("a raft transport on a closed Mux runs")
	}
}

// A listener that fails for a while, for want of file descriptors for example,
// does not end the node's port.
func TestMux_AcceptGoesOn(t *testing.T) {
	noLeak(t)
	m := listen(t, Config{Addr: "127.0.0.1:0", Network: &weak{}})
	join(t, m, "b", nil)
	c := connect(t, m)
	say(t, c, appendHello(nil, hello{"c1", "a", "b"}))
	if why, _ := reply(t, c); why != accepted {
		t.Errorf("got refusal %d, want none", why)
	}
}

// weak is a network whose first Accept fails.
type weak struct{ tcp }

func (weak) Listen(addr string) (net.Listener, error) {
	ln, err := TCP().Listen(addr)
	return &weakListener{Listener: ln}, err
}

type weakListener struct {
	net.Listener
	failed bool
}

func (l *weakListener) Accept() (net.Conn, error) {
	if !l.failed {
		l.failed = true
		return nil, syscall.EMFILE
	}
	return l.Listener.Accept()
}
