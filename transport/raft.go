package transport

import (
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
// The embedded transport's other methods (pre-vote) are raft's own.
type Raft struct {
	*raft.NetworkTransport
	streams *streams
}

// NewRaft makes m accept raft connections for the node cfg.ID of cfg.Cluster.
// There is one for each Mux. Closing it makes m refuse them again; closing m
// closes it.
func NewRaft(m *Mux, cfg RaftConfig) *Raft {
	cfg = cfg.withDefaults()
	s := newStreams(m.cfg.Network, cfg)
	r := &Raft{streams: s, NetworkTransport: raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		ServerAddressProvider:   s,
		Logger:                  cfg.Logger,
		Stream:                  s,
		MaxPool:                 cfg.MaxPool,
		MaxRPCsInFlight:         1,
		Timeout:                 cfg.Timeout,
		MsgpackUseNewTimeFormat: true,
	})}
	s.left = func() { m.leave(r) }
	m.mu.Lock()
	closed := m.closed
	if !closed {
		m.raft = r
	}
	m.mu.Unlock()
	if closed {
		r.Close()
	}
	return r
}

// Close ends all raft connections, also those on which an answer is still to
// come, and waits for their handlers. Idempotent.
func (r *Raft) Close() error {
	err := r.NetworkTransport.Close()
	r.CloseStreams() // hashicorp's Close leaves the connections in its pool open
	r.streams.end()
	return err
}

// SetHeartbeatHandler implements raft.Transport. It leaves the fast path unused.
func (*Raft) SetHeartbeatHandler(func(raft.RPC)) {}

// EncodePeer implements raft.Transport. What raft stores and sends is the plain
// address.
func (*Raft) EncodePeer(_ raft.ServerID, addr raft.ServerAddress) []byte { return []byte(addr) }
