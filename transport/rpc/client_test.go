package rpc

import (
	"context"
	"errors"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/durationpb"

	pb "github.com/raftlease/raftlease/transport/rpc/raftleasev1"
)

func TestClients_Acquire(t *testing.T) {
	asked := make(chan *pb.AcquireRequest, 1)
	s := serve(t, &node{acquire: func(_ context.Context, r *pb.AcquireRequest) (*pb.AcquireResponse, error) {
		asked <- r
		return &pb.AcquireResponse{Token: 7, Ttl: r.Ttl}, nil
	}})
	c := clients(t, dialTCP)
	for range 3 {
		res, err := c.Lease(s.addr).Acquire(within(t), &pb.AcquireRequest{Name: "report", Owner: "a", Ttl: durationpb.New(time.Second)})
		if err != nil {
			t.Fatal(err)
		}
		if res.Token != 7 || res.Ttl.AsDuration() != time.Second {
			t.Errorf("got token %d and ttl %v, want 7 and 1s", res.Token, res.Ttl.AsDuration())
		}
		if r := await(t, "request", asked); r.Name != "report" || r.Owner != "a" {
			t.Errorf("got a request for %q by %q, want report by a", r.Name, r.Owner)
		}
	}
	if got := s.conns.Load(); got != 1 {
		t.Errorf("got %d connections for three calls, want 1", got)
	}
}

func TestClients_NoCompression(t *testing.T) {
	encodings := make(chan []string, 1)
	s := serve(t, &node{acquire: func(ctx context.Context, _ *pb.AcquireRequest) (*pb.AcquireResponse, error) {
		info, _ := connect.CallInfoForHandlerContext(ctx)
		encodings <- append(info.RequestHeader().Values("Accept-Encoding"), info.RequestHeader().Values("Content-Encoding")...)
		return &pb.AcquireResponse{}, nil
	}})
	if _, err := clients(t, dialTCP).Lease(s.addr).Acquire(within(t), &pb.AcquireRequest{}); err != nil {
		t.Fatal(err)
	}
	if got := await(t, "request", encodings); slices.Contains(got, "gzip") {
		t.Errorf("got encodings %q, want no gzip", got)
	}
}

func TestNotSent(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	arrived := make(chan struct{}, 1)
	s := serve(t, &node{acquire: func(ctx context.Context, r *pb.AcquireRequest) (*pb.AcquireResponse, error) {
		arrived <- struct{}{}
		switch r.Name {
		case "refused":
			return nil, Error(&pb.ErrorDetail{Code: pb.ErrorCode_ERROR_CODE_HELD}, "held")
		case "hanging":
			<-ctx.Done()
		}
		return nil, ctx.Err()
	}})
	acquire := func(ctx context.Context, c *Clients, addr, name string) error {
		_, err := c.Lease(addr).Acquire(ctx, &pb.AcquireRequest{Name: name})
		return err
	}

	t.Run("true when the port is closed", func(t *testing.T) {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		ln.Close()
		err = acquire(within(t), clients(t, dialTCP), ln.Addr().String(), "x")
		if !NotSent(err) {
			t.Errorf("NotSent(%v) is false", err)
		}
		if got := connect.CodeOf(err); got != connect.CodeUnavailable {
			t.Errorf("got code %v, want unavailable", got)
		}
	})
	t.Run("true when the context ends while the connection is being opened", func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		dialled := make(chan struct{})
		c := clients(t, func(ctx context.Context, _ string) (net.Conn, error) {
			close(dialled)
			<-ctx.Done()
			return nil, ctx.Err()
		})
		go func() { <-dialled; cancel() }()
		err := acquire(ctx, c, "10.0.0.1:1", "x")
		if !NotSent(err) || !errors.Is(err, context.Canceled) {
			t.Errorf("got %v with NotSent %v, want context canceled and true", err, NotSent(err))
		}
	})
	t.Run("false for a call that was answered with an error", func(t *testing.T) {
		err := acquire(within(t), clients(t, dialTCP), s.addr, "refused")
		<-arrived
		if err == nil || NotSent(err) {
			t.Errorf("NotSent(%v) is true", err)
		}
	})
	t.Run("false for a call whose context ended while it was under way", func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		go func() { <-arrived; cancel() }()
		err := acquire(ctx, clients(t, dialTCP), s.addr, "hanging")
		if err == nil || NotSent(err) {
			t.Errorf("NotSent(%v) is true", err)
		}
	})
	t.Run("false for a call whose connection broke", func(t *testing.T) {
		var mu sync.Mutex
		var conn net.Conn
		c := clients(t, func(ctx context.Context, addr string) (net.Conn, error) {
			mu.Lock()
			defer mu.Unlock()
			var err error
			conn, err = dialTCP(ctx, addr)
			return conn, err
		})
		go func() {
			<-arrived
			mu.Lock()
			defer mu.Unlock()
			conn.Close()
		}()
		err := acquire(within(t), c, s.addr, "hanging")
		if err == nil || NotSent(err) {
			t.Errorf("NotSent(%v) is true", err)
		}
	})
	t.Run("false for nil", func(t *testing.T) {
		if NotSent(nil) {
			t.Error("NotSent(nil) is true")
		}
	})
}

func TestClients_Close(t *testing.T) {
	t.Run("ends a call under way and its connection", func(t *testing.T) {
		arrived := make(chan struct{})
		s := serve(t, &node{acquire: func(ctx context.Context, _ *pb.AcquireRequest) (*pb.AcquireResponse, error) {
			close(arrived)
			<-ctx.Done()
			return nil, ctx.Err()
		}})
		c := NewClients(dialTCP)
		done := make(chan error, 1)
		go func() {
			_, err := c.Lease(s.addr).Acquire(context.Background(), &pb.AcquireRequest{})
			done <- err
		}()
		await(t, "call", arrived)
		c.Close()
		if err := await(t, "end of the call", done); err == nil || NotSent(err) {
			t.Errorf("got %v with NotSent %v, want an error and false", err, NotSent(err))
		}
		c.Close()
	})
	t.Run("gives up a connection that is being opened", func(t *testing.T) {
		noLeak(t)
		dialled := make(chan struct{})
		c := NewClients(func(ctx context.Context, _ string) (net.Conn, error) {
			close(dialled)
			<-ctx.Done()
			return nil, ctx.Err()
		})
		done := make(chan error, 1)
		go func() {
			_, err := c.Lease("10.0.0.1:1").Acquire(context.Background(), &pb.AcquireRequest{})
			done <- err
		}()
		await(t, "dial", dialled)
		c.Close()
		if err := await(t, "end of the call", done); !NotSent(err) {
			t.Errorf("NotSent(%v) is false", err)
		}
	})
	t.Run("closes a connection that opens too late", func(t *testing.T) {
		noLeak(t)
		near, far := net.Pipe()
		defer far.Close()
		dialled, open := make(chan struct{}), make(chan struct{})
		c := NewClients(func(context.Context, string) (net.Conn, error) {
			close(dialled)
			<-open
			return near, nil
		})
		done := make(chan error, 1)
		go func() {
			_, err := c.Lease("10.0.0.1:1").Acquire(context.Background(), &pb.AcquireRequest{})
			done <- err
		}()
		await(t, "dial", dialled)
		c.Close()
		close(open)
		if err := await(t, "end of the call", done); !NotSent(err) {
			t.Errorf("NotSent(%v) is false", err)
		}
		near.SetReadDeadline(time.Time{})
		if _, err := near.Read(make([]byte, 1)); err == nil {
			t.Error("the connection is open")
		}
	})
	t.Run("makes later calls fail as not sent", func(t *testing.T) {
		s := serve(t, &node{})
		c := NewClients(dialTCP)
		c.Close()
		_, err := c.Lease(s.addr).Get(within(t), &pb.GetRequest{})
		if !NotSent(err) {
			t.Errorf("NotSent(%v) is false", err)
		}
	})
}

func TestClients_NoRedirect(t *testing.T) {
	noLeak(t)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	asked := make(chan string, 8)
	srv := http.Server{Protocols: &protocols, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL.Path
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(http.StatusTemporaryRedirect)
	})}
	done := make(chan error, 1)
	go func() { done <- srv.Serve(ln) }()
	t.Cleanup(func() { srv.Close(); <-done })
	if _, err := clients(t, dialTCP).Lease(ln.Addr().String()).Get(within(t), &pb.GetRequest{}); err == nil {
		t.Error("a redirected call succeeded")
	}
	if got := len(asked); got != 1 {
		t.Errorf("got %d requests, want 1", got)
	}
}
