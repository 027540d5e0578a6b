package transport

import (
	"fmt"
	"net"
	"sync"
	"time"
)

// peeked is a connection whose first byte was read already.
type peeked struct {
	net.Conn
	first []byte
}

// Read implements net.Conn.
func (c *peeked) Read(b []byte) (int, error) {
	if len(c.first) > 0 && len(b) > 0 {
		n := copy(b, c.first)
		c.first = c.first[n:]
		return n, nil
	}
	return c.Conn.Read(b)
}

// First bytes of raft's messages (raft net_transport.go), and the largest message
// accepted: raft itself has no limit. A full append is 128 entries of some 64 KiB;
// a snapshot is as large as the state.
const (
	installSnapshot = 2
	maxMessage      = 64 << 20
)

// inbound is a raft connection that another node opened. raft reads from it
// without any deadline, and reads on for as long as something comes.
type inbound struct {
	net.Conn
	idle  time.Duration // longest silence between messages
	stall time.Duration // and within one
	ended func()

	// Of the message under way: every message is answered before the next one.
	size    int
	limited bool
}

// Read implements net.Conn. Silence for too long ends the connection; the other
// side opens a new one before it needs it (outbound).
func (c *inbound) Read(b []byte) (int, error) {
	patience := c.idle
	if c.size > 0 {
		patience = c.stall
	}
	c.SetReadDeadline(time.Now().Add(patience))
	n, err := c.Conn.Read(b)
	if c.size == 0 && n > 0 {
		c.limited = b[0] != installSnapshot
	}
	c.size += n
	if c.limited && c.size > maxMessage {
		return 0, fmt.Errorf("raft message from %s is longer than %d bytes", c.RemoteAddr(), maxMessage)
	}
	return n, err
}

// Write implements net.Conn.
func (c *inbound) Write(b []byte) (int, error) {
	c.size = 0
	c.SetWriteDeadline(time.Now().Add(c.stall))
	return c.Conn.Write(b)
}

// Close implements net.Conn. It is the last thing that raft does with c.
func (c *inbound) Close() error {
	defer c.ended()
	return c.Conn.Close()
}

// outbound is a raft connection that this node opened. raft keeps such
// connections for later, the one for votes perhaps for months. A vote must not
// fail because the other side gave up a silent connection: one that was not used
// for a while is replaced before the next request.
type outbound struct {
	dial  func() (net.Conn, error)
	idle  time.Duration // shorter than that of the other side
	ended func()

	mu       sync.Mutex // guards the fields below; not held over a read, write or dial
	conn     net.Conn
	atRest   bool      // the last request was answered; else part of one was sent
	used     time.Time // for the last answer
	deadline time.Time
	closed   bool
}

func (c *outbound) current() net.Conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.conn
}

// Read implements net.Conn.
func (c *outbound) Read(b []byte) (int, error) {
	n, err := c.current().Read(b)
	if n > 0 {
		c.mu.Lock()
		c.atRest, c.used = true, time.Now()
		c.mu.Unlock()
	}
	return n, err
}

// Write implements net.Conn.
func (c *outbound) Write(b []byte) (int, error) {
	c.mu.Lock()
	// Not within a request, however slow: the other side would take the rest of it
	// for a request of its own.
	stale := c.atRest && time.Since(c.used) > c.idle
	c.atRest = false
	c.mu.Unlock()
	if stale {
		if err := c.replace(); err != nil {
			return 0, err
		}
	}
	return c.current().Write(b)
}

func (c *outbound) replace() error {
	conn, err := c.dial()
	if err != nil {
		return err
	}
	c.mu.Lock()
	old, closed, deadline := c.conn, c.closed, c.deadline
	if !closed {
		c.conn = conn
	}
	c.mu.Unlock()
	if closed {
		conn.Close()
		return net.ErrClosed
	}
	old.Close()
	return conn.SetDeadline(deadline)
}

// Close implements net.Conn.
func (c *outbound) Close() error {
	c.mu.Lock()
	c.closed = true
	conn := c.conn
	c.mu.Unlock()
	c.ended()
	return conn.Close()
}

// LocalAddr implements net.Conn.
func (c *outbound) LocalAddr() net.Addr { return c.current().LocalAddr() }

// RemoteAddr implements net.Conn.
func (c *outbound) RemoteAddr() net.Addr { return c.current().RemoteAddr() }

// SetDeadline implements net.Conn. raft sets no other deadline.
func (c *outbound) SetDeadline(t time.Time) error {
	c.mu.Lock()
	c.deadline = t
	conn := c.conn
	c.mu.Unlock()
	return conn.SetDeadline(t)
}

// SetReadDeadline implements net.Conn.
func (c *outbound) SetReadDeadline(t time.Time) error { return c.SetDeadline(t) }

// SetWriteDeadline implements net.Conn.
func (c *outbound) SetWriteDeadline(t time.Time) error { return c.SetDeadline(t) }
