package rpc

import (
	"context"
	"net"
	"sync"
)

// conns are the open connections of Clients, so that Close can end them: what
// net/http still uses or still opens it would leave for later.
type conns struct {
	dialer Dialer
	ctx    context.Context // ends at close
	cancel context.CancelFunc

	mu     sync.Mutex
	open   map[net.Conn]struct{}
	closed bool
}

func newConns(dial Dialer) *conns {
	ctx, cancel := context.WithCancel(context.Background())
	return &conns{dialer: dial, ctx: ctx, cancel: cancel, open: map[net.Conn]struct{}{}}
}

// dial opens a connection. It has a limit of its own, since net/http goes on
// dialling for calls that were given up: calls to a host that does not answer
// would pile up.
func (s *conns) dial(ctx context.Context, addr string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	raw, err := s.dialer(ctx, addr)
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: raw, all: s}
	s.mu.Lock()
	closed := s.closed
	if !closed {
		s.open[c] = struct{}{}
	}
	s.mu.Unlock()
	if closed {
		raw.Close()
		return nil, net.ErrClosed
	}
	return c, nil
}

func (s *conns) close() {
	s.mu.Lock()
	s.closed = true
	open := s.open
	s.open = map[net.Conn]struct{}{}
	s.mu.Unlock()
	s.cancel()
	for c := range open {
		c.Close()
	}
}

// conn is a connection that leaves the list when it is closed.
type conn struct {
	net.Conn
	all *conns
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.all.mu.Lock()
	delete(c.all.open, c)
	c.all.mu.Unlock()
	return c.Conn.Close()
}
