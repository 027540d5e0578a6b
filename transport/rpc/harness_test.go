package rpc

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"
	"go.uber.org/goleak"

	pb "github.com/raftlease/raftlease/transport/rpc/raftleasev1"
	"github.com/raftlease/raftlease/transport/rpc/raftleasev1/raftleasev1connect"
)

// limit is generous: it only ends tests that hang.
const limit = 30 * time.Second

// node is a made-up member: what its calls do is said by functions.
type node struct {
	raftleasev1connect.UnimplementedLeaseServiceHandler
	raftleasev1connect.UnimplementedClusterServiceHandler
	raftleasev1connect.UnimplementedPeerServiceHandler

	acquire func(context.Context, *pb.AcquireRequest) (*pb.AcquireResponse, error)
	watch   func(context.Context, *pb.WatchRequest, *connect.ServerStream[pb.WatchResponse]) error
}

func (n *node) Acquire(ctx context.Context, r *pb.AcquireRequest) (*pb.AcquireResponse, error) {
	return n.acquire(ctx, r)
}

func (n *node) Watch(ctx context.Context, r *pb.WatchRequest, s *connect.ServerStream[pb.WatchResponse]) error {
	return n.watch(ctx, r, s)
}

// served is a Server for a node on a loopback port.
type served struct {
	*Server
	addr  string
	conns atomic.Int32 // that were opened to it
}

// counting counts the connections of a listener.
type counting struct {
	net.Listener
	conns *atomic.Int32
}

func (l counting) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		l.conns.Add(1)
	}
	return c, err
}

// serve starts a server, which ends with the test. Nothing may be left then.
func serve(t testing.TB, n *node) *served {
	t.Helper()
	s := serveUnclosed(t, n)
	t.Cleanup(func() {
		if err := s.Close(within(t)); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return s
}

// serveUnclosed starts a server that the test closes.
func serveUnclosed(t testing.TB, n *node) *served {
	t.Helper()
	noLeak(t)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &served{Server: NewServer(ServerConfig{Lease: n, Cluster: n, Peer: n}), addr: ln.Addr().String()}
	done := make(chan error, 1)
	go func() { done <- s.Serve(counting{ln, &s.conns}) }()
	t.Cleanup(func() {
		if err := await(t, "end of Serve", done); err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return s
}

func noLeak(t testing.TB) {
	t.Helper()
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
}

// dialTCP connects over the operating system's network.
func dialTCP(ctx context.Context, addr string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, "tcp", addr)
}

func clients(t testing.TB, dial Dialer) *Clients {
	t.Helper()
	c := NewClients(dial)
	t.Cleanup(c.Close)
	return c
}

// within is a context that ends long after a test should have passed.
func within(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	t.Cleanup(cancel)
	return ctx
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
