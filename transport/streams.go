package transport

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// streams is the raft.StreamLayer of a Raft. Dial needs to know who is meant, and
// raft only tells it an address, so streams is also the address provider and puts
// both into one: "id@host:port".
type streams struct {
	*queue
	network Network
	cfg     RaftConfig
	left    func() // tells the Mux that there is nobody to accept connections
	ctx     context.Context
	cancel  context.CancelFunc
	inbound sync.WaitGroup // their handlers

	mu     sync.Mutex
	closed bool
	open   map[net.Conn]struct{} // inbound and outbound
}

func newStreams(network Network, cfg RaftConfig) *streams {
	ctx, cancel := context.WithCancel(context.Background())
	return &streams{
		queue: newQueue(address(cfg.Advertise)), network: network, cfg: cfg,
		ctx: ctx, cancel: cancel, open: map[net.Conn]struct{}{},
	}
}

// stallFactor times Timeout is how long the other side may pause within a
// message. Without a limit raft's main loop would wait in the middle of a snapshot
// for a leader that is cut off.
const stallFactor = 5

// accept hands a connection that shook hands to raft, or closes it.
func (s *streams) accept(conn net.Conn) {
	in := &inbound{
		Conn: conn, idle: s.cfg.IdleTimeout, stall: stallFactor * s.cfg.Timeout,
		ended: sync.OnceFunc(func() { s.forget(conn); s.inbound.Done() }),
	}
	s.mu.Lock()
	closed := s.closed
	if !closed {
		s.inbound.Add(1)
		s.open[conn] = struct{}{}
	}
	s.mu.Unlock()
	if closed {
		conn.Close()
		return
	}
	s.put(in)
}

func (s *streams) forget(conn net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, conn)
}

// ServerAddr implements raft.ServerAddressProvider.
func (s *streams) ServerAddr(id raft.ServerID) (raft.ServerAddress, error) {
	addr, ok := s.cfg.Address(string(id))
	if !ok {
		return "", fmt.Errorf("address of node %q is not known yet", id)
	}
	return raft.ServerAddress(string(id) + "@" + addr), nil
}

// Dial implements raft.StreamLayer.
func (s *streams) Dial(target raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	at := strings.LastIndexByte(string(target), '@') // an address has none, an id may
	if at < 0 {
		return nil, fmt.Errorf("dial %q: the id of the node at this address is not known yet", target)
	}
	id, addr := string(target[:at]), string(target[at+1:])
	dial := func() (net.Conn, error) { return s.dial(id, addr, timeout) }
	conn, err := dial()
	if err != nil {
		return nil, err
	}
	out := &outbound{dial: dial, idle: s.cfg.IdleTimeout / 2, conn: conn, used: time.Now(), atRest: true}
	out.ended = func() { s.forget(out) }
	s.mu.Lock()
	closed := s.closed
	if !closed {
		s.open[out] = struct{}{}
	}
	s.mu.Unlock()
	if closed {
		conn.Close()
		return nil, fmt.Errorf("dial node %q at %q: %w", id, addr, net.ErrClosed)
	}
	return out, nil
}

// dial opens a connection and shakes hands.
func (s *streams) dial(id, addr string, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(s.ctx, timeout)
	defer cancel()
	conn, err := s.network.Dial(ctx, addr)
	if err != nil {
		return nil, fmt.Errorf("dial node %q at %q: %w", id, addr, err)
	}
	// At end nobody waits for a handshake.
	defer context.AfterFunc(s.ctx, func() { conn.Close() })()
	deadline, _ := ctx.Deadline()
	if err := s.handshake(conn, id, addr, deadline); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

func (s *streams) handshake(conn net.Conn, id, addr string, deadline time.Time) error {
	h := hello{cluster: s.cfg.Cluster, from: s.cfg.ID, to: id}
	if err := h.check(); err != nil {
		return err
	}
	if err := conn.SetDeadline(deadline); err != nil {
		return err
	}
	if _, err := conn.Write(appendHello(nil, h)); err != nil {
		return fmt.Errorf("raft handshake with node %q at %q: %w", id, addr, err)
	}
	why, reason, err := readReply(conn)
	switch {
	case err != nil:
		return fmt.Errorf("raft handshake with node %q at %q: %w", id, addr, err)
	case why != accepted:
		return &HandshakeError{Addr: addr, Cluster: h.cluster, From: h.from, To: id, Refusal: why, Reason: reason}
	}
	return conn.SetDeadline(time.Time{})
}

// Close implements raft.StreamLayer.
func (s *streams) Close() error {
	s.left()
	return s.queue.Close()
}

// end closes all connections and waits for the handlers of the inbound ones.
func (s *streams) end() {
	s.mu.Lock()
	s.closed = true
	open := s.open
	s.open = map[net.Conn]struct{}{}
	s.mu.Unlock()
	s.cancel()
	for c := range open {
		c.Close()
	}
	s.inbound.Wait()
}

// address is a net.Addr made from text.
type address string

// Network implements net.Addr.
func (address) Network() string { return "tcp" }

// String implements net.Addr.
func (a address) String() string { return string(a) }
