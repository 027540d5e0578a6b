package rpc

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"

	"connectrpc.com/connect"

	"github.com/raftlease/raftlease/transport/rpc/raftleasev1/raftleasev1connect"
)

// Dialer connects to "host:port". It gives up when ctx ends.
type Dialer func(ctx context.Context, addr string) (net.Conn, error)

// Clients are the clients of all services on all nodes. Calls to one address
// share a connection. Safe for concurrent use.
type Clients struct {
	conns     *conns
	transport *http.Transport
	http      *http.Client
}

// NewClients returns clients that connect with dial.
func NewClients(dial Dialer) *Clients {
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	conns := newConns(dial)
	t := &http.Transport{
		Protocols: &protocols,
		DialContext: func(ctx context.Context, _, addr string) (net.Conn, error) {
			conn, err := conns.dial(ctx, addr)
			if err != nil {
				return nil, notSentError{fmt.Errorf("dial %q: %w", addr, err)}
			}
			return conn, nil
		},
		HTTP2:              &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout},
		IdleConnTimeout:    idleTimeout,
		DisableCompression: true,
	}
	return &Clients{conns: conns, transport: t, http: &http.Client{
		Transport:     t,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Close closes all connections, which ends the calls under way, and gives up
// those that are being opened. Later calls fail as not sent. Idempotent.
func (c *Clients) Close() {
	c.conns.close()
	c.transport.CloseIdleConnections()
}

// mark marks the calls that ended before they had a connection, which is more
// than those that could not connect: a context may have ended meanwhile. A
// connection that comes later is not used, since HTTP/2 looks at the context
// before it writes a request.
func mark(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, r connect.AnyRequest) (connect.AnyResponse, error) {
		var connected atomic.Bool
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
			GotConn: func(httptrace.GotConnInfo) { connected.Store(true) },
		})
		res, err := next(ctx, r)
		if err != nil && !connected.Load() {
			err = notSentError{err}
		}
		return res, err
	}
}

var clientOptions = []connect.ClientOption{
	connect.WithInterceptors(connect.UnaryInterceptorFunc(mark)),
	connect.WithReadMaxBytes(maxResponse),
	connect.WithSendMaxBytes(maxRequest),
	connect.WithAcceptCompression("gzip", nil, nil), // on one network the time is worth more than the bytes
}

// Lease returns the lease service of the node at addr.
func (c *Clients) Lease(addr string) raftleasev1connect.LeaseServiceClient {
	return raftleasev1connect.NewLeaseServiceClient(c.http, "http://"+addr, clientOptions...)
}

// Cluster returns the operators' service of the node at addr.
func (c *Clients) Cluster(addr string) raftleasev1connect.ClusterServiceClient {
	return raftleasev1connect.NewClusterServiceClient(c.http, "http://"+addr, clientOptions...)
}

// Peer returns the members' service of the node at addr.
func (c *Clients) Peer(addr string) raftleasev1connect.PeerServiceClient {
	return raftleasev1connect.NewPeerServiceClient(c.http, "http://"+addr, clientOptions...)
}
