package client

import (
	"context"
	"net"
	"sync"

	"github.com/raftlease/raftlease/lease"
	"github.com/raftlease/raftlease/transport/rpc"
)

// conns are the connections of a client. net/http closes only those that it
// takes for idle, so a client that ends closes its own.
type conns struct {
	mu     sync.Mutex
	closed bool
	open   map[*conn]struct{}
}

type conn struct {
	net.Conn
	of *conns
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.of.mu.Lock()
	delete(c.of.open, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

// add takes care of a connection; one that comes too late is closed.
func (s *conns) add(raw net.Conn) (net.Conn, error) {
	c := &conn{Conn: raw, of: s}
	s.mu.Lock()
	closed := s.closed
	if !closed {
		s.open[c] = struct{}{}
	}
	s.mu.Unlock()
	if closed {
		raw.Close()
		return nil, lease.ErrClosed
	}
	return c, nil
}

// close closes all connections, and those still to come.
func (s *conns) close() {
	s.mu.Lock()
	s.closed = true
	open := s.open
	s.open = nil
	s.mu.Unlock()
	for c := range open {
		c.Conn.Close()
	}
}

// dialer is dial with a limit of its own, since net/http goes on connecting for
// a call that was given up, and a limit for all calls: Close.
func (c *Client) dialer(dial rpc.Dialer) rpc.Dialer {
	return func(ctx context.Context, addr string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, c.patient/2)
		defer cancel()
		defer context.AfterFunc(c.ctx, cancel)()
		raw, err := dial(ctx, addr)
		if err != nil {
			return nil, err
		}
		return c.conns.add(raw)
	}
}
