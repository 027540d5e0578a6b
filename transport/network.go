package transport

import (
	"context"
	"net"
	"time"
)

// Network is the one seam between a node and the wires. Implementations are
// safe for concurrent use. TCP is the real one; package memnet has one in
// memory whose links can be slowed and cut.
type Network interface {
	// Listen binds addr, "host:port" with port 0 for any free one.
	Listen(addr string) (net.Listener, error)
	// Dial connects to addr. It gives up when ctx ends.
	Dial(ctx context.Context, addr string) (net.Conn, error)
}

// TCP returns the operating system's network. Its connections send keepalives,
// so that a host which died without a word is noticed after about 11 s even on
// a connection that is only read from.
func TCP() Network { return tcp{} }

type tcp struct{}

var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second, Interval: 2 * time.Second, Count: 3}

func (tcp) Listen(addr string) (net.Listener, error) {
	lc := net.ListenConfig{KeepAliveConfig: keepAlive}
	return lc.Listen(context.Background(), "tcp", addr)
}

func (tcp) Dial(ctx context.Context, addr string) (net.Conn, error) {
	d := net.Dialer{KeepAliveConfig: keepAlive}
	return d.DialContext(ctx, "tcp", addr)
}
