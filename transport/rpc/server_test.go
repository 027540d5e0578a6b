package rpc

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	pb "github.com/raftlease/raftlease/transport/rpc/raftleasev1"
)

// post sends a request over HTTP/1.1, as curl does. Headers are pairs.
func post(t testing.TB, url, contentType string, body []byte, header ...string) (*http.Response, string) {
	t.Helper()
	tr := &http.Transport{DisableKeepAlives: true, DisableCompression: true}
	defer tr.CloseIdleConnections()
	r, err := http.NewRequestWithContext(within(t), http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", contentType)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	res, err := (&http.Client{Transport: tr}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(b)
}

const acquirePath = "/raftlease.v1.LeaseService/Acquire"

func TestServer_JSON(t *testing.T) {
	s := serve(t, &node{acquire: func(_ context.Context, r *pb.AcquireRequest) (*pb.AcquireResponse, error) {
		if r.Name == "held" {
			return nil, Error(&pb.ErrorDetail{Code: pb.ErrorCode_ERROR_CODE_HELD, Owner: "b"}, "held by b")
		}
		return &pb.AcquireResponse{Token: 7, Ttl: r.Ttl}, nil
	}})
	t.Run("a call over HTTP/1.1 is answered", func(t *testing.T) {
		res, body := post(t, "http://"+s.addr+acquirePath, "application/json", []byte(`{"name":"report","owner":"a","ttl":"1.5s"}`))
		var got struct{ Token, TTL string }
		if err := json.Unmarshal([]byte(body), &got); err != nil {
			t.Fatal(err)
		}
		if res.StatusCode != 200 || res.ProtoMajor != 1 || got.Token != "7" || got.TTL != "1.500s" {
			t.Errorf("got %s %s %s, want token 7 and ttl 1.5s with HTTP/1.1 200", res.Proto, res.Status, body)
		}
	})
	t.Run("a refusal has a status, a code and a detail", func(t *testing.T) {
		res, body := post(t, "http://"+s.addr+acquirePath, "application/json", []byte(`{"name":"held"}`))
		if res.StatusCode != http.StatusBadRequest || !strings.Contains(body, `"failed_precondition"`) ||
			!strings.Contains(body, "held by b") || !strings.Contains(body, "raftlease.v1.ErrorDetail") {
			t.Errorf("got %s %s, want 400 failed_precondition, held by b, with a detail", res.Status, body)
		}
	})
	t.Run("G8: what is no JSON is refused", func(t *testing.T) {
		res, body := post(t, "http://"+s.addr+acquirePath, "application/json", []byte(`{"name":`))
		if res.StatusCode != http.StatusBadRequest || !strings.Contains(body, `"invalid_argument"`) {
			t.Errorf("got %s %s, want 400 invalid_argument", res.Status, body)
		}
	})
	t.Run("an unknown path is not found", func(t *testing.T) {
		if res, _ := post(t, "http://"+s.addr+"/nothing", "application/json", nil); res.StatusCode != http.StatusNotFound {
			t.Errorf("got %s, want 404", res.Status)
		}
	})
}

// G8.
func TestServer_RequestSize(t *testing.T) {
	s := serve(t, &node{acquire: func(_ context.Context, r *pb.AcquireRequest) (*pb.AcquireResponse, error) {
		if proto.Size(r) > maxRequest {
			t.Errorf("the handler got %d bytes, want at most %d", proto.Size(r), maxRequest)
		}
		return &pb.AcquireResponse{}, nil
	}})
	// message is a request of exactly n bytes.
	message := func(n int) []byte {
		r := &pb.AcquireRequest{Owner: strings.Repeat("x", n)}
		r.Owner = r.Owner[:n-(proto.Size(r)-n)]
		b, err := proto.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if len(b) != n {
			t.Fatalf("made %d bytes, want %d", len(b), n)
		}
		return b
	}
	url := "http://" + s.addr + acquirePath
	t.Run("the largest request is read", func(t *testing.T) {
		if res, body := post(t, url, "application/proto", message(maxRequest)); res.StatusCode != 200 {
			t.Errorf("got %s %s, want 200", res.Status, body)
		}
	})
	t.Run("one byte more is refused by the server", func(t *testing.T) {
		res, body := post(t, url, "application/proto", message(maxRequest+1))
		if res.StatusCode != http.StatusTooManyRequests || !strings.Contains(body, `"resource_exhausted"`) {
			t.Errorf("got %s %s, want 429 resource_exhausted", res.Status, body)
		}
	})
	t.Run("a small request that grows above the limit is refused", func(t *testing.T) {
		var z bytes.Buffer
		w := gzip.NewWriter(&z)
		w.Write(message(maxRequest + 1))
		w.Close()
		res, body := post(t, url, "application/proto", z.Bytes(), "Content-Encoding", "gzip")
		if res.StatusCode != http.StatusTooManyRequests || !strings.Contains(body, `"resource_exhausted"`) {
			t.Errorf("got %s %s, want 429 resource_exhausted", res.Status, body)
		}
	})
	t.Run("one byte more is refused by the client as well", func(t *testing.T) {
		var r pb.AcquireRequest
		if err := proto.Unmarshal(message(maxRequest+1), &r); err != nil {
			t.Fatal(err)
		}
		_, err := clients(t, dialTCP).Lease(s.addr).Acquire(within(t), &r)
		if got := connect.CodeOf(err); got != connect.CodeResourceExhausted {
			t.Errorf("got %v, want resource exhausted", err)
		}
	})
}

func TestServer_Panic(t *testing.T) {
	s := serve(t, &node{
		acquire: func(_ context.Context, r *pb.AcquireRequest) (*pb.AcquireResponse, error) {
			if r.Name == "bad" {
				panic("secret")
			}
			return &pb.AcquireResponse{}, nil
		},
		watch: func(context.Context, *pb.WatchRequest, *connect.ServerStream[pb.WatchResponse]) error {
			panic("secret")
		},
	})
	c := clients(t, dialTCP).Lease(s.addr)
	check := func(err error) {
		t.Helper()
		if connect.CodeOf(err) != connect.CodeInternal || strings.Contains(err.Error(), "secret") {
			t.Errorf("got %v, want an internal error without the panic's text", err)
		}
		if NotSent(err) {
			t.Errorf("NotSent(%v) is true", err)
		}
	}
	_, err := c.Acquire(within(t), &pb.AcquireRequest{Name: "bad"})
	check(err)
	stream, err := c.Watch(within(t), &pb.WatchRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for stream.Receive() {
	}
	check(stream.Err())
	stream.Close()
	if _, err := c.Acquire(within(t), &pb.AcquireRequest{Name: "good"}); err != nil {
		t.Errorf("after the panics: %v", err)
	}
}

func TestServer_Close(t *testing.T) {
	t.Run("ends a hanging call and a hanging stream", func(t *testing.T) {
		arrived := make(chan struct{}, 2)
		s := serve(t, &node{
			acquire: func(ctx context.Context, _ *pb.AcquireRequest) (*pb.AcquireResponse, error) {
				arrived <- struct{}{}
				<-ctx.Done()
				return nil, Error(&pb.ErrorDetail{Code: pb.ErrorCode_ERROR_CODE_CLOSED}, "stopping")
			},
			watch: func(ctx context.Context, _ *pb.WatchRequest, s *connect.ServerStream[pb.WatchResponse]) error {
				s.Send(&pb.WatchResponse{Index: 1})
				arrived <- struct{}{}
				<-ctx.Done()
				return Error(&pb.ErrorDetail{Code: pb.ErrorCode_ERROR_CODE_CLOSED}, "stopping")
			},
		})
		c := clients(t, dialTCP).Lease(s.addr)
		unary, streamed := make(chan error, 1), make(chan error, 1)
		go func() {
			_, err := c.Acquire(context.Background(), &pb.AcquireRequest{})
			unary <- err
		}()
		go func() {
			st, err := c.Watch(context.Background(), &pb.WatchRequest{})
			if err != nil {
				streamed <- err
				return
			}
			defer st.Close()
			for st.Receive() {
			}
			streamed <- st.Err()
		}()
		await(t, "call", arrived)
		await(t, "call", arrived)
		if err := s.Close(within(t)); err != nil {
			t.Errorf("Close: %v", err)
		}
		for what, c := range map[string]chan error{"call": unary, "stream": streamed} {
			if err := await(t, "end of the "+what, c); Detail(err).GetCode() != pb.ErrorCode_ERROR_CODE_CLOSED {
				t.Errorf("%s: got %v, want the handler's last word", what, err)
			}
		}
		if err := s.Close(within(t)); err != nil {
			t.Errorf("second Close: %v", err)
		}
	})
	t.Run("does not wait for a handler that never returns", func(t *testing.T) {
		arrived, release := make(chan struct{}), make(chan struct{})
		s := serveUnclosed(t, &node{acquire: func(context.Context, *pb.AcquireRequest) (*pb.AcquireResponse, error) {
			close(arrived)
			<-release
			return &pb.AcquireResponse{}, nil
		}})
		defer close(release)
		done := make(chan error, 1)
		go func() {
			_, err := clients(t, dialTCP).Lease(s.addr).Acquire(context.Background(), &pb.AcquireRequest{})
			done <- err
		}()
		await(t, "call", arrived)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		closed := make(chan error, 1)
		go func() { closed <- s.Close(ctx) }()
		if err := await(t, "Close", closed); err == nil || !strings.Contains(err.Error(), "1 calls still run") {
			t.Errorf("got %v, want an error that counts one call", err)
		}
		if err := await(t, "end of the call", done); err == nil || NotSent(err) {
			t.Errorf("got %v with NotSent %v, want an error and false", err, NotSent(err))
		}
	})
	t.Run("waits for a handler that is still busy", func(t *testing.T) {
		arrived, returned := make(chan struct{}), make(chan struct{})
		s := serve(t, &node{acquire: func(ctx context.Context, _ *pb.AcquireRequest) (*pb.AcquireResponse, error) {
			defer close(returned)
			close(arrived)
			<-ctx.Done()
			time.Sleep(20 * time.Millisecond)
			return &pb.AcquireResponse{}, nil
		}})
		go clients(t, dialTCP).Lease(s.addr).Acquire(context.Background(), &pb.AcquireRequest{})
		await(t, "call", arrived)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if err := s.Close(ctx); err != nil {
			t.Errorf("Close: %v", err)
		}
		select {
		case <-returned:
		default:
			t.Error("Close returned before the handler")
		}
	})
	// G6: nothing was done, and the caller can tell.
	t.Run("refuses a call that comes on an open connection", func(t *testing.T) {
		s := serve(t, &node{acquire: func(context.Context, *pb.AcquireRequest) (*pb.AcquireResponse, error) {
			t.Error("the handler was called")
			return &pb.AcquireResponse{}, nil
		}})
		s.mu.Lock()
		s.closed = true // the first step of Close
		close(s.ended)
		s.mu.Unlock()
		c := clients(t, dialTCP).Lease(s.addr)
		_, err := c.Acquire(within(t), &pb.AcquireRequest{})
		if Detail(err).GetCode() != pb.ErrorCode_ERROR_CODE_CLOSED || connect.CodeOf(err) != connect.CodeUnavailable {
			t.Errorf("got %v, want closed", err)
		}
		st, err := c.Watch(within(t), &pb.WatchRequest{})
		if err == nil {
			for st.Receive() {
			}
			err = st.Err()
			st.Close()
		}
		if Detail(err).GetCode() != pb.ErrorCode_ERROR_CODE_CLOSED {
			t.Errorf("stream: got %v, want closed", err)
		}
	})
	t.Run("before Serve makes Serve return", func(t *testing.T) {
		noLeak(t)
		s := NewServer(ServerConfig{Lease: &node{}, Cluster: &node{}, Peer: &node{}})
		if err := s.Close(within(t)); err != nil {
			t.Errorf("Close: %v", err)
		}
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer ln.Close()
		if err := s.Serve(ln); err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
}

func TestServer_ServeReportsItsListener(t *testing.T) {
	noLeak(t)
	s := NewServer(ServerConfig{Lease: &node{}, Cluster: &node{}, Peer: &node{}})
	defer s.Close(within(t))
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ln.Close()
	if err := s.Serve(ln); err == nil || !strings.Contains(err.Error(), ln.Addr().String()) {
		t.Errorf("got %v, want an error that names %s", err, ln.Addr())
	}
}
