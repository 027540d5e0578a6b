package rpc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"connectrpc.com/connect"
	"github.com/hashicorp/go-hclog"

	pb "github.com/raftlease/raftlease/transport/rpc/raftleasev1"
	"github.com/raftlease/raftlease/transport/rpc/raftleasev1/raftleasev1connect"
)

// ServerConfig says what a Server serves.
type ServerConfig struct {
	Lease   raftleasev1connect.LeaseServiceHandler
	Cluster raftleasev1connect.ClusterServiceHandler
	Peer    raftleasev1connect.PeerServiceHandler
	Logger  hclog.Logger // Defaults to none
}

// Server serves the services on one listener.
type Server struct {
	http    http.Server
	cancel  context.CancelFunc
	stopped *connect.ErrorWriter // for calls that come after Close

	mu     sync.Mutex
	closed bool
	calls  int           // under way
	ended  chan struct{} // closed when Close has begun and no call is under way
}

// NewServer returns a server that serves nothing yet.
func NewServer(cfg ServerConfig) *Server {
	if cfg.Logger == nil {
		cfg.Logger = hclog.NewNullLogger()
	}
	opts := connect.WithHandlerOptions(
		connect.WithReadMaxBytes(maxRequest),
		connect.WithSendMaxBytes(maxResponse),
		connect.WithRecover(func(_ context.Context, spec connect.Spec, _ http.Header, v any) error {
			cfg.Logger.Error("handler panicked", "procedure", spec.Procedure, "panic", v, "stack", string(debug.Stack()))
			return connect.NewError(connect.CodeInternal, fmt.Errorf("internal error in %s", spec.Procedure))
		}),
	)
	mux := http.NewServeMux()
	mux.Handle(raftleasev1connect.NewLeaseServiceHandler(cfg.Lease, opts))
	mux.Handle(raftleasev1connect.NewClusterServiceHandler(cfg.Cluster, opts))
	mux.Handle(raftleasev1connect.NewPeerServiceHandler(cfg.Peer, opts))

	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	ctx, cancel := context.WithCancel(context.Background())
	s := &Server{cancel: cancel, stopped: connect.NewErrorWriter(opts), ended: make(chan struct{})}
	s.http = http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !s.begin() {
				s.refuse(w, r)
				return
			}
			defer s.end()
			mux.ServeHTTP(w, r)
		}),
		Protocols:         &protocols,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: maxStreams, SendPingTimeout: pingAfter, PingTimeout: pingTimeout},
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ReadHeaderTimeout: pingAfter,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    1 << 16,
		ErrorLog:          cfg.Logger.StandardLogger(&hclog.StandardLoggerOptions{ForceLevel: hclog.Debug}),
	}
	return s
}

// Serve accepts connections from ln until Close. It returns nil after Close, else
// why it stopped.
func (s *Server) Serve(ln net.Listener) error {
	if err := s.http.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve on %s: %w", ln.Addr(), err)
	}
	return nil
}

// begin notes a call; false after Close.
func (s *Server) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.calls++
	}
	return !s.closed
}

func (s *Server) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls--
	if s.closed && s.calls == 0 {
		close(s.ended)
	}
}

// refuse answers a call that came after Close. The detail says that nothing was
// done: without one the caller could not know.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request) {
	// An error of writing means that the caller is gone.
	_ = s.stopped.Write(w, r, Error(&pb.ErrorDetail{Code: pb.ErrorCode_ERROR_CODE_CLOSED}, "this member is stopping"))
}

// Close refuses new calls, cancels the contexts of those under way, gives them
// until ctx ends to answer, closes all connections and waits for the handlers.
// It is an error if some have not returned a second later; they are left
// behind. Idempotent.
func (s *Server) Close(ctx context.Context) error {
	s.mu.Lock()
	if !s.closed && s.calls == 0 {
		close(s.ended)
	}
	s.closed = true
	s.mu.Unlock()
	s.cancel()
	err := s.http.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		err = nil // they had their time
	}
	err = errors.Join(err, s.http.Close())
	late := time.NewTimer(lateTimeout)
	defer late.Stop()
	select {
	case <-s.ended:
	case <-late.C:
		s.mu.Lock()
		err = errors.Join(err, fmt.Errorf("close server: %d calls still run %v after their contexts ended", s.calls, lateTimeout))
		s.mu.Unlock()
	}
	return err
}
