package memnet

import "net"

// listener hands out the connections that were dialled to its address. Its
// network's mutex guards it.
type listener struct {
	network *Network
	host    string
	addr    address
	queue   []*conn
	closed  bool
	wake    chan struct{} // closed and replaced when queue or closed changes
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	for {
		l.network.mu.Lock()
		if l.closed {
			l.network.mu.Unlock()
			return nil, net.ErrClosed
		}
		if len(l.queue) > 0 {
			c := l.queue[0]
			l.queue = l.queue[1:]
			l.network.mu.Unlock()
			return c, nil
		}
		wake := l.wake
		l.network.mu.Unlock()
		<-wake
	}
}

// Close implements net.Listener. Connections that were not accepted are reset.
func (l *listener) Close() error {
	l.network.mu.Lock()
	defer l.network.mu.Unlock()
	if l.closed {
		return net.ErrClosed
	}
	delete(l.network.listeners, string(l.addr))
	l.shut()
	return nil
}

// Addr implements net.Listener.
func (l *listener) Addr() net.Addr { return l.addr }

func (l *listener) shut() {
	l.closed = true
	for _, c := range l.queue {
		c.in.reset()
		c.out.reset()
	}
	l.queue = nil
	l.changed()
}

func (l *listener) changed() {
	close(l.wake)
	l.wake = make(chan struct{})
}
