package transport

import (
	"net"
	"sync"
)

// queue is a net.Listener fed by hand.
type queue struct {
	addr  net.Addr
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newQueue(addr net.Addr) *queue {
	return &queue{addr: addr, conns: make(chan net.Conn), done: make(chan struct{})}
}

// put waits until conn is accepted, and closes it when q is closed first.
func (q *queue) put(conn net.Conn) {
	select {
	case q.conns <- conn:
	case <-q.done:
		conn.Close()
	}
}

// Accept implements net.Listener.
func (q *queue) Accept() (net.Conn, error) {
	select {
	case c := <-q.conns:
		return c, nil
	case <-q.done:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (q *queue) Close() error {
	q.once.Do(func() { close(q.done) })
	return nil
}

// Addr implements net.Listener.
func (q *queue) Addr() net.Addr { return q.addr }
