package rpc

import (
	"context"
	"net"
	"net/http"

	"connectrpc.com/connect"

	"github.com/raftlease/raftlease/transport/rpc/raftleasev1/raftleasev1connect"
)

// Dialer connects to "host:port". It gives up when ctx ends.
type Dialer func(ctx context.Context, addr string) (net.Conn, error)

// Clients are the clients of all services on all nodes. Calls to one address
// share a connection. Safe for concurrent use.
type Clients struct {
	transport *http.Transport
	http      *http.Client
}

// NewClients returns clients that connect with dial.
func NewClients(dial Dialer) *Clients {
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	t := &http.Transport{
		Protocols: &protocols,
		DialContext: func(ctx context.Context, _, addr string) (net.Conn, error) {
			conn, err := dial(ctx, addr)
			if err != nil {
				return nil, &dialError{addr, err}
			}
			return conn, nil
		},
		HTTP2:              &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout},
		IdleConnTimeout:    idleTimeout,
		DisableCompression: true,
	}
	return &Clients{transport: t, http: &http.Client{
		Transport:     t,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Close closes the connections that have no call under way; calls under way end
// with their contexts.
func (c *Clients) Close() { c.transport.CloseIdleConnections() }

var clientOptions = []connect.ClientOption{
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
