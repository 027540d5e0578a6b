package memnet

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/raftlease/raftlease/transport"
)

// Link is the state of the way from one host to another. The zero value is a
// link that delivers everything at once.
type Link struct {
	// Delay returns how long a message is under way; one that was sent later
	// never arrives earlier. Defaults to no delay. It may be called concurrently.
	Delay func() time.Duration
	// Lose reports whether a message is lost, which resets its connection.
	// Defaults to never. It may be called concurrently.
	Lose func() bool
	// Cut keeps everything back that would be delivered, until it is unset.
	Cut bool
}

// Network is a set of hosts, each of which reaches all others. It is safe for
// concurrent use.
type Network struct {
	mu        sync.Mutex // guards everything below, and all connections
	links     map[way]Link
	listeners map[string]*listener
	pipes     map[*pipe]struct{} // that may still deliver
	wake      chan struct{}      // closed and replaced when a link or a listener changes
	ports     int
}

// way is a direction between two hosts.
type way struct{ from, to string }

// New returns a network whose links are all good.
func New() *Network {
	return &Network{
		links: map[way]Link{}, listeners: map[string]*listener{}, pipes: map[*pipe]struct{}{},
		wake: make(chan struct{}), ports: 1 << 15,
	}
}

// Host returns the network as host sees it. It listens on addresses of its own
// name only.
func (n *Network) Host(host string) transport.Network { return view{n, host} }

// SetLink sets the way from one host to another, at once and also for what is
// under way; a message's delay is that of when it was sent.
func (n *Network) SetLink(from, to string, l Link) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.links[way{from, to}] = l
	n.changed()
}

// Crash resets all connections of host and closes its listeners, as the end of
// its process would.
func (n *Network) Crash(host string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for addr, l := range n.listeners {
		if l.host == host {
			delete(n.listeners, addr)
			l.shut()
		}
	}
	for p := range n.pipes {
		if p.way.from == host || p.way.to == host {
			p.reset()
		}
	}
	n.changed()
}

// changed wakes everybody who waits for a link. n.mu is held.
func (n *Network) changed() {
	close(n.wake)
	n.wake = make(chan struct{})
	for p := range n.pipes {
		p.changed()
	}
}

// passable reports whether a message from one host reaches another. n.mu is held.
func (n *Network) passable(w way) bool { return !n.links[w].Cut }

// travel decides on a message that is sent on w now.
func (n *Network) travel(w way) (delay time.Duration, lost bool) {
	n.mu.Lock()
	l := n.links[w]
	n.mu.Unlock()
	if l.Delay != nil {
		delay = l.Delay()
	}
	return delay, l.Lose != nil && l.Lose()
}

// view is the network as one host sees it.
type view struct {
	network *Network
	host    string
}

// Listen implements transport.Network.
func (v view) Listen(addr string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("listen on %q: %w", addr, err)
	}
	if host != v.host {
		return nil, fmt.Errorf("listen on %q: %w: this is host %q", addr, syscall.EADDRNOTAVAIL, v.host)
	}
	n := v.network
	n.mu.Lock()
	defer n.mu.Unlock()
	if port == "0" {
		n.ports++
		port = strconv.Itoa(n.ports)
	}
	a := address(net.JoinHostPort(host, port))
	if n.listeners[string(a)] != nil {
		return nil, fmt.Errorf("listen on %q: %w", addr, syscall.EADDRINUSE)
	}
	l := &listener{network: n, host: host, addr: a, wake: make(chan struct{})}
	n.listeners[string(a)] = l
	return l, nil
}

// Dial implements transport.Network. It takes a message in each direction: over a
// cut link it waits.
func (v view) Dial(ctx context.Context, addr string) (net.Conn, error) {
	c, err := v.dial(ctx, addr)
	if err != nil {
		return nil, fmt.Errorf("dial %q from host %q: %w", addr, v.host, err)
	}
	return c, nil
}

func (v view) dial(ctx context.Context, addr string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	n := v.network
	out, in := way{v.host, host}, way{host, v.host}
	there, lost := n.travel(out)
	back, lostBack := n.travel(in)
	if lost || lostBack { // nobody answers
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	if err := pause(ctx, there+back); err != nil {
		return nil, err
	}
	for {
		n.mu.Lock()
		wake := n.wake
		if n.passable(out) && n.passable(in) {
			defer n.mu.Unlock()
			l := n.listeners[addr]
			if l == nil {
				return nil, syscall.ECONNREFUSED
			}
			n.ports++
			here, other := n.connect(v.host, address(net.JoinHostPort(v.host, strconv.Itoa(n.ports))), host, l.addr)
			l.queue = append(l.queue, other)
			l.changed()
			return here, nil
		}
		n.mu.Unlock()
		select {
		case <-wake:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return context.Cause(ctx)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// address is "host:port".
type address string

func (address) Network() string  { return "memnet" }
func (a address) String() string { return string(a) }

// errReset is what both ends of a connection get that was reset.
var errReset = error(syscall.ECONNRESET)
