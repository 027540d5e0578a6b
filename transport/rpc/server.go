package rpc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"runtime/debug"
	"sync"

	"connectrpc.com/connect"
	"github.com/hashicorp/go-hclog"

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
	http   http.Server
	cancel context.CancelFunc
	calls  sync.WaitGroup
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
	s := &Server{cancel: cancel}
	s.http = http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			s.calls.Add(1)
			defer s.calls.Done()
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

// Close takes no more calls, cancels the contexts of those under way, gives
// them until ctx ends to answer, closes all connections and waits for the
// handlers.
func (s *Server) Close(ctx context.Context) error {
	s.cancel()
	err := s.http.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		err = nil // they had their time
	}
	err = errors.Join(err, s.http.Close())
	s.calls.Wait()
	return err
}
