package raftlease

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/raftlease/raftlease/internal/granter"
	"github.com/raftlease/raftlease/internal/raftstore"
	"github.com/raftlease/raftlease/transport"
)

// Settings of raft beside its timeouts.
const (
	maxAppendEntries = 128  // an entry is packed, up to 64 KiB
	trailingLogs     = 2048 // counts entries
	transferLimit    = 2 * time.Second
)

// member is a node's part in a formed cluster: raft, the state machine under it
// and, while it leads, a granter.
type member struct {
	n       *Node
	cluster string
	fsm     *fsm
	forward *forwarder
	trans   *transport.Raft
	raft    atomic.Pointer[raft.Raft] // set before anybody but raft's own goroutines sees the member
	leading atomic.Pointer[granter.Granter]

	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu      sync.Mutex
	view    view
	changed chan struct{} // closed when leader, granter or members have changed
}

// view is who leads, as far as this node knows.
type view struct {
	leader string          // its id; empty when nobody is known to lead
	ctx    context.Context // ends when that changes
	end    context.CancelFunc
}

// startMember runs raft on the node's disk. The first members also write the
// first configuration, unless that was done before.
func (n *Node) startMember(id raftstore.Identity) (*member, error) {
	ctx, cancel := context.WithCancel(context.Background())
	m := &member{n: n, cluster: id.Cluster, ctx: ctx, cancel: cancel, changed: make(chan struct{})}
	m.forward = &forwarder{m: m}
	m.fsm = newFSM(id.Cluster, n.fail, m.broadcast)
	m.view.ctx, m.view.end = context.WithCancel(ctx)
	m.trans = transport.NewRaft(n.mux, transport.RaftConfig{
		Cluster: id.Cluster, ID: n.cfg.ID, Advertise: n.addr, Address: m.address, Logger: n.log.Named("raft-net"),
	})
	conf := n.raftConfig()
	if err := bootstrap(conf, n.disk, m.trans, id); err != nil {
		cancel()
		return nil, errors.Join(fmt.Errorf("form cluster %q: %w", id.Cluster, err), m.trans.Close())
	}
	r, err := raft.NewRaft(conf, m.fsm, n.disk.Logs, n.disk.Stable, n.disk.Snapshots, m.trans)
	if err != nil {
		cancel()
		return nil, errors.Join(fmt.Errorf("start raft: %w", err), m.trans.Close())
	}
	m.raft.Store(r)
	observations := make(chan raft.Observation, 1)
	observer := raft.NewObserver(observations, false, func(o *raft.Observation) bool {
		_, ok := o.Data.(raft.LeaderObservation)
		return ok
	})
	r.RegisterObserver(observer)
	m.wg.Go(func() {
		defer r.DeregisterObserver(observer)
		m.watchLeader(observations)
	})
	m.wg.Go(m.lead)
	return m, nil
}

func (n *Node) raftConfig() *raft.Config {
	t := n.cfg.Timing.timeouts()
	c := raft.DefaultConfig()
	c.LocalID = raft.ServerID(n.cfg.ID)
	c.HeartbeatTimeout, c.ElectionTimeout = t.heartbeat, t.election
	c.LeaderLeaseTimeout, c.CommitTimeout = t.leaderLease, t.commit
	c.MaxAppendEntries, c.TrailingLogs = maxAppendEntries, trailingLogs
	c.NoLegacyTelemetry = true
	c.ShutdownOnRemove = false // settle sees to that, on every removed node
	c.Logger = n.log.Named("raft")
	return c
}

// bootstrap writes the first configuration on the disk of a founder that has
// none yet. All founders write the same.
func bootstrap(conf *raft.Config, disk *raftstore.Store, trans raft.Transport, id raftstore.Identity) error {
	last, err := disk.Logs.LastIndex()
	if err != nil || len(id.Founders) == 0 || last > 0 {
		return err
	}
	snaps, err := disk.Snapshots.List()
	if err != nil || len(snaps) > 0 {
		return err
	}
	// A crash in the middle of a bootstrap leaves a term without a log, which
	// raft takes for state. This disk has not voted: raft has never run on it.
	if has, err := disk.HasState(); err != nil {
		return err
	} else if has {
		if err := disk.Stable.SetUint64([]byte("CurrentTerm"), 0); err != nil {
			return err
		}
	}
	var servers []raft.Server
	for _, peer := range sortedKeys(id.Founders) {
		servers = append(servers, raft.Server{ID: raft.ServerID(peer), Address: raft.ServerAddress(id.Peers[peer])})
	}
	return raft.BootstrapCluster(conf, disk.Logs, disk.Stable, disk.Snapshots, trans, raft.Configuration{Servers: servers})
}

// stop ends everything that startMember began. raft stops first, because a
// granter that still leads would wait for entries under way. A raft that hangs
// on its disk is left behind after limit.
func (m *member) stop(limit time.Duration) error {
	shut := m.raft.Load().Shutdown()
	done := make(chan error, 1)
	go func() { done <- shut.Error() }()
	late := time.NewTimer(limit)
	defer late.Stop()
	var err error
	select {
	case err = <-done:
	case <-late.C:
		err = fmt.Errorf("stop raft: no answer within %v", limit)
	}
	m.cancel()
	m.forward.close()
	m.wg.Wait()
	return errors.Join(err, m.trans.Close())
}

// broadcast wakes everybody who waits for a change.
func (m *member) broadcast() {
	m.mu.Lock()
	defer m.mu.Unlock()
	close(m.changed)
	m.changed = make(chan struct{})
}

// change returns a channel that is closed at the next change of leader, granter
// or members.
func (m *member) change() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.changed
}

// watchLeader keeps the view. raft drops observations that nobody takes, so
// each one only says that it is time to look.
func (m *member) watchLeader(observations <-chan raft.Observation) {
	for {
		m.look()
		select {
		case <-observations:
		case <-m.ctx.Done():
			return
		}
	}
}

func (m *member) look() {
	_, id := m.raft.Load().LeaderWithID()
	m.mu.Lock()
	if string(id) == m.view.leader {
		m.mu.Unlock()
		return
	}
	m.view.end()
	m.view.leader = string(id)
	m.view.ctx, m.view.end = context.WithCancel(m.ctx)
	m.mu.Unlock()
	m.n.log.Info("leader changed", "leader", string(id), "term", m.raft.Load().CurrentTerm())
	m.broadcast()
}

// leader returns who leads, empty when nobody is known to, and a context that
// ends when that changes.
func (m *member) leader() (string, context.Context) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.view.leader, m.view.ctx
}

// servers returns the latest configuration, committed or not, and its index.
func (m *member) servers() ([]raft.Server, uint64) {
	r := m.raft.Load()
	if r == nil {
		return nil, 0
	}
	f := r.GetConfiguration()
	if f.Error() != nil {
		return nil, 0
	}
	return f.Configuration().Servers, f.Index()
}

// server returns the member with this id.
func (m *member) server(id string) (raft.Server, bool) {
	servers, _ := m.servers()
	for _, s := range servers {
		if s.ID == raft.ServerID(id) {
			return s, true
		}
	}
	return raft.Server{}, false
}

// address returns where a member is to be dialled.
func (m *member) address(id string) (string, bool) {
	s, ok := m.server(id)
	return string(s.Address), ok
}
