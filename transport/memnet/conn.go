package memnet

import (
	"io"
	"net"
	"os"
	"syscall"
	"time"
)

// window is how many bytes may be under way in one direction before a writer
// waits, as a socket's buffers have it.
const window = 1 << 20

// conn is one end of a connection. Its network's mutex guards it.
type conn struct {
	network       *Network
	local, remote address
	in, out       *pipe
	closed        bool
	readBy        time.Time // zero: no deadline
	writeBy       time.Time
}

// pipe is one direction of a connection.
type pipe struct {
	network *Network
	way     way
	queue   []message
	size    int           // bytes in queue
	last    time.Time     // when the last message of queue arrives
	broken  bool          // reset
	unread  bool          // the reading end is closed
	wake    chan struct{} // closed and replaced when anything changes for either end
}

// message is what one Write sent. Without bytes it is the end of the stream.
type message struct {
	at time.Time // of its arrival
	b  []byte
}

// connect returns the two ends of a new connection. n.mu is held.
func (n *Network) connect(from string, local address, to string, remote address) (here, there *conn) {
	out, in := n.pipe(from, to), n.pipe(to, from)
	here = &conn{network: n, local: local, remote: remote, in: in, out: out}
	there = &conn{network: n, local: remote, remote: local, in: out, out: in}
	return here, there
}

func (n *Network) pipe(from, to string) *pipe {
	p := &pipe{network: n, way: way{from, to}, wake: make(chan struct{})}
	n.pipes[p] = struct{}{}
	return p
}

func (p *pipe) changed() {
	close(p.wake)
	p.wake = make(chan struct{})
}

func (p *pipe) reset() {
	p.broken = true
	p.queue, p.size = nil, 0
	delete(p.network.pipes, p)
	p.changed()
}

func (p *pipe) push(delay time.Duration, b []byte) {
	at := time.Now().Add(delay)
	if at.Before(p.last) {
		at = p.last
	}
	p.last = at
	p.queue = append(p.queue, message{at, b})
	p.size += len(b)
	p.changed()
}

// Read implements net.Conn.
func (c *conn) Read(b []byte) (int, error) {
	var count int
	err := c.attempt(c.in, &c.readBy, func() (bool, time.Time, error) {
		p := c.in
		switch {
		case p.broken:
			return true, time.Time{}, errReset
		case len(b) == 0:
			return true, time.Time{}, nil
		case len(p.queue) == 0 || !c.network.passable(p.way):
			return false, time.Time{}, nil
		}
		head := &p.queue[0]
		if head.at.After(time.Now()) {
			return false, head.at, nil
		}
		if len(head.b) == 0 {
			return true, time.Time{}, io.EOF
		}
		count = copy(b, head.b)
		head.b = head.b[count:]
		p.size -= count
		if len(head.b) == 0 {
			p.queue = p.queue[1:]
		}
		p.changed()
		return true, time.Time{}, nil
	})
	return count, err
}

// Write implements net.Conn. One call is one message.
func (c *conn) Write(b []byte) (int, error) {
	delay, lost := c.network.travel(c.out.way)
	err := c.attempt(c.out, &c.writeBy, func() (bool, time.Time, error) {
		p := c.out
		switch {
		case p.broken:
			return true, time.Time{}, errReset
		case p.unread && c.network.passable(c.in.way):
			return true, time.Time{}, syscall.EPIPE
		case len(b) == 0:
			return true, time.Time{}, nil
		case p.size > 0 && p.size+len(b) > window:
			return false, time.Time{}, nil
		case lost:
			c.in.reset()
			p.reset()
			return true, time.Time{}, nil
		}
		p.push(delay, append([]byte(nil), b...))
		return true, time.Time{}, nil
	})
	if err != nil {
		return 0, err
	}
	return len(b), nil
}

// attempt calls step under the lock until it is done, the connection is closed or
// the deadline has passed. In between it waits for p to change, or for the time
// that step returns.
func (c *conn) attempt(p *pipe, by *time.Time, step func() (done bool, next time.Time, err error)) error {
	for {
		c.network.mu.Lock()
		if c.closed {
			c.network.mu.Unlock()
			return net.ErrClosed
		}
		if !by.IsZero() && !by.After(time.Now()) {
			c.network.mu.Unlock()
			return os.ErrDeadlineExceeded
		}
		done, next, err := step()
		if !by.IsZero() && (next.IsZero() || by.Before(next)) {
			next = *by
		}
		wake := p.wake
		c.network.mu.Unlock()
		if done {
			return err
		}
		wait(wake, next)
	}
}

// wait waits for wake, or until next if that is a time.
func wait(wake <-chan struct{}, next time.Time) {
	if next.IsZero() {
		<-wake
		return
	}
	t := time.NewTimer(time.Until(next))
	defer t.Stop()
	select {
	case <-wake:
	case <-t.C:
	}
}

// Close implements net.Conn. What was written before still arrives.
func (c *conn) Close() error {
	delay, _ := c.network.travel(c.out.way)
	c.network.mu.Lock()
	defer c.network.mu.Unlock()
	if c.closed {
		return net.ErrClosed
	}
	c.closed = true
	if !c.out.broken {
		c.out.push(delay, nil)
	}
	c.in.unread = true
	c.in.queue, c.in.size = nil, 0
	if c.out.unread { // the other end is closed as well
		delete(c.network.pipes, c.in)
		delete(c.network.pipes, c.out)
	}
	c.in.changed()
	c.out.changed()
	return nil
}

// LocalAddr implements net.Conn.
func (c *conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr implements net.Conn.
func (c *conn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline implements net.Conn.
func (c *conn) SetDeadline(t time.Time) error { return c.setDeadlines(&t, &t) }

// SetReadDeadline implements net.Conn.
func (c *conn) SetReadDeadline(t time.Time) error { return c.setDeadlines(&t, nil) }

// SetWriteDeadline implements net.Conn.
func (c *conn) SetWriteDeadline(t time.Time) error { return c.setDeadlines(nil, &t) }

func (c *conn) setDeadlines(read, write *time.Time) error {
	c.network.mu.Lock()
	defer c.network.mu.Unlock()
	if c.closed {
		return net.ErrClosed
	}
	if read != nil {
		c.readBy = *read
		c.in.changed()
	}
	if write != nil {
		c.writeBy = *write
		c.out.changed()
	}
	return nil
}
