package transport

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

// RaftConfig says who this node is to the others.
type RaftConfig struct {
	Cluster   string // the id of the cluster
	ID        string // of this node
	Advertise string // host:port at which the others reach it
	// Address returns where a member is to be dialled, by its id; false when
	// that is not known yet.
	Address func(id string) (addr string, ok bool)

	// Timeout bounds a dial, and one message with its answer. Defaults to 2 s.
	Timeout time.Duration
	// IdleTimeout is how long an inbound connection may be silent. Defaults to
	// 2 min.
	IdleTimeout time.Duration
	// MaxPool is the number of connections kept for each peer. Defaults to 3.
	MaxPool int
	// Logger defaults to none.
	Logger hclog.Logger
}

func (c RaftConfig) withDefaults() RaftConfig {
	if c.Timeout == 0 {
		c.Timeout = 2 * time.Second
	}
	if c.IdleTimeout == 0 {
		c.IdleTimeout = 2 * time.Minute
	}
	if c.MaxPool == 0 {
		c.MaxPool = 3
	}
	if c.Logger == nil {
		c.Logger = hclog.NewNullLogger()
	}
	return c
}

// Raft is the raft.Transport of a node: hashicorp's, with three differences that
// leases rest on.
//
//   - There is no fast path for heartbeats. hashicorp's handles them beside
//     raft's main loop, and a term can then go backwards after a vote (upstream
//     issue 695).
//   - One append is under way for each follower. Pipelining can dead-lock
//     replication after a refused append (upstream issue 612); packed entries
//     make up for it.
//   - A connection opens with a handshake over cluster and node ids.
//
// The embedded transport's other methods (pre-vote, Close) are raft's own.
type Raft struct {
	*raft.NetworkTransport
}

// NewRaft makes m accept raft connections for the node cfg.ID of cfg.Cluster.
// There is one for each Mux. Closing it makes m refuse them again.
func NewRaft(m *Mux, cfg RaftConfig) *Raft {
	cfg = cfg.withDefaults()
	s := &streams{mux: m, cfg: cfg, queue: newQueue(address(cfg.Advertise))}
	m.mu.Lock()
	if m.closed {
		s.queue.Close()
	} else {
		m.raft = s
	}
	m.mu.Unlock()
	return &Raft{raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		ServerAddressProvider:   s,
		Logger:                  cfg.Logger,
		Stream:                  s,
		MaxPool:                 cfg.MaxPool,
		MaxRPCsInFlight:         1,
		Timeout:                 cfg.Timeout,
		MsgpackUseNewTimeFormat: true,
	})}
}

// SetHeartbeatHandler implements raft.Transport. It leaves the fast path unused.
func (*Raft) SetHeartbeatHandler(func(raft.RPC)) {}

// EncodePeer implements raft.Transport. What raft stores and sends is the plain
// address.
func (*Raft) EncodePeer(_ raft.ServerID, addr raft.ServerAddress) []byte { return []byte(addr) }

// address is a net.Addr made from text.
type address string

// Network implements net.Addr.
func (address) Network() string { return "tcp" }

// String implements net.Addr.
func (a address) String() string { return string(a) }

// streams is the raft.StreamLayer of a Raft. Dial needs to know who is meant, and
// raft only tells it an address, so streams is also the address provider and puts
// both into one: "id@host:port".
type streams struct {
	*queue
	mux *Mux
	cfg RaftConfig
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
	id, addr, ok := strings.Cut(string(target), "@")
	if !ok {
		return nil, fmt.Errorf("dial %q: the id of the node at this address is not known yet", target)
	}
	dial := func() (net.Conn, error) { return s.dial(id, addr, timeout) }
	conn, err := dial()
	if err != nil {
		return nil, err
	}
	return &outbound{dial: dial, idle: s.cfg.IdleTimeout / 2, conn: conn, used: time.Now()}, nil
}

// dial opens a connection and shakes hands.
func (s *streams) dial(id, addr string, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	conn, err := s.mux.cfg.Network.Dial(ctx, addr)
	if err != nil {
		return nil, fmt.Errorf("dial node %q at %q: %w", id, addr, err)
	}
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
	s.mux.mu.Lock()
	if s.mux.raft == s {
		s.mux.raft = nil
	}
	s.mux.mu.Unlock()
	return s.queue.Close()
}
