package raftlease

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/raftlease/raftlease/internal/foundation"
	"github.com/raftlease/raftlease/internal/raftstore"
	"github.com/raftlease/raftlease/lease"
	"github.com/raftlease/raftlease/transport"
	"github.com/raftlease/raftlease/transport/rpc"
	pb "github.com/raftlease/raftlease/transport/rpc/raftleasev1"
)

// serverWait is the time that calls under way have when the node stops.
const serverWait = time.Second

// Node is one member of a cluster, and a lease store for the service that embeds
// it. All methods are safe for concurrent use.
//
// A Node is a lease.Store, Waiter, Inspector, DataStore and Watcher. Calls are
// passed on to the leader, and tried again through elections until their context
// ends; give every call a context that ends.
type Node struct {
	cfg  Config
	on   foundation.Foundation
	log  hclog.Logger
	jobs atomic.Uint64 // JobOwner names handed out

	disk    *raftstore.Store
	mux     *transport.Mux
	server  *rpc.Server
	clients *rpc.Clients
	addr    string             // at which the other nodes reach this one
	run     raftstore.Identity // as it was at the start

	ctx        context.Context // ends when the node closes; its cause is ErrClosed
	cancel     context.CancelCauseFunc
	background sync.WaitGroup // forming and settling
	serving    sync.WaitGroup // the server's accept loop
	opened     chan struct{}  // closed when Open is about to return
	formed     chan struct{}  // closed when member is set
	member     *member
	stop       sync.Once
	stopErr    error
	done       chan struct{}

	mu       sync.Mutex
	identity raftstore.Identity // as it is now
	missing  string             // what forming or joining waits for
	failure  error
	drain    chan struct{} // closed when jobs shall return
	draining bool
	holds    int
	released chan struct{} // closed when the last hold is released; nil while nobody waits
}

// Open starts a node. It returns once the node listens; with Peers or Join the
// cluster may form later, which Ready waits for. An error says which field, file
// or peer is to blame, and nothing is left behind then. What goes wrong later
// closes the node, see Done and Err.
func Open(cfg Config) (*Node, error) {
	return OpenOn(cfg, foundation.Machine(cfg.Dir))
}

// OpenOn is Open on another network, disk and other clocks than the machine's.
// It is for this module's own simulation: nobody else can name a Foundation.
func OpenOn(cfg Config, on foundation.Foundation) (*Node, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("open node: %w", err)
	}
	cfg = cfg.withDefaults()
	n := &Node{
		cfg: cfg, on: on, log: cfg.Logger.With("node", cfg.ID),
		opened: make(chan struct{}), formed: make(chan struct{}), done: make(chan struct{}), drain: make(chan struct{}),
	}
	n.ctx, n.cancel = context.WithCancelCause(context.Background())
	defer close(n.opened)
	if err := n.start(); err != nil {
		return nil, errors.Join(fmt.Errorf("open node %q: %w", cfg.ID, err), n.shutdown(lease.ErrClosed))
	}
	return n, nil
}

// start opens everything from the disk up.
func (n *Node) start() error {
	var err error
	n.disk, err = raftstore.Open(n.on.Disk, raftstore.Options{
		Node: n.cfg.ID, WriteLimit: n.cfg.DiskTimeout, Failed: n.fail, Logger: n.log,
	})
	if err != nil {
		return err
	}
	n.run = n.disk.Identity()
	n.identity = n.run
	n.mux, err = transport.Listen(transport.Config{
		Network: n.on.Network, Addr: n.cfg.Listen, Insecure: n.cfg.Insecure, Logger: n.log,
	})
	if err != nil {
		return err
	}
	if n.addr, err = advertised(n.cfg, n.mux.Addr()); err != nil {
		return err
	}
	n.clients = rpc.NewClients(n.on.Network.Dial)
	n.server = rpc.NewServer(rpc.ServerConfig{
		Lease: leaseService{n}, Cluster: clusterService{n}, Peer: peerService{n}, Logger: n.log,
	})
	n.serving.Go(func() {
		if err := n.server.Serve(n.mux.HTTP()); err != nil && n.ctx.Err() == nil {
			n.fail(err)
		}
	})
	n.log.Info("node listens", "addr", n.addr, "owner", n.Owner())
	return n.findCluster()
}

// advertised returns the address that the others are told.
func advertised(cfg Config, listened net.Addr) (string, error) {
	switch {
	case cfg.Advertise != "":
		return cfg.Advertise, nil
	case cfg.Peers[cfg.ID] != "":
		return cfg.Peers[cfg.ID], nil
	}
	host, _, err := net.SplitHostPort(listened.String())
	if err != nil {
		return "", err
	}
	if net.ParseIP(host).IsUnspecified() {
		var f lease.Faults
		f.Add("Advertise", "", "host:port at which the other nodes reach this one, because Listen is a wildcard")
		return "", f.Err()
	}
	return listened.String(), nil
}

// findCluster enters the cluster that the disk belongs to, or forms or joins
// one, where it does not wait for the others.
func (n *Node) findCluster() error {
	id := n.run
	switch {
	case id.Cluster != "":
		return n.enter(id)
	case len(n.cfg.Peers) == 0 && n.cfg.Join == "":
		id.Founders, id.Peers = map[string]string{n.cfg.ID: id.Disk}, n.peers()
		id.Cluster = clusterID(id.Founders)
		return n.enter(id)
	}
	// Most of what is wrong shows when the others are asked for the first time.
	if done, err := n.tryToEnter(n.ctx); done || err != nil {
		return err
	}
	n.background.Go(func() {
		if err := n.keepTrying(n.ctx); err != nil && n.ctx.Err() == nil {
			n.fail(err)
		}
	})
	return nil
}

// enter makes the node a member of the cluster in id, which it remembers first.
func (n *Node) enter(id raftstore.Identity) error {
	if id.Cluster != n.run.Cluster {
		if err := n.disk.SetIdentity(id); err != nil {
			return err
		}
	}
	m, err := n.startMember(id)
	if err != nil {
		return err
	}
	n.mu.Lock()
	n.identity, n.missing = id, ""
	n.mu.Unlock()
	n.member = m
	close(n.formed)
	n.log.Info("in cluster", "cluster", id.Cluster, "incarnation", id.Incarnation)
	n.background.Go(func() { m.settle(n.ctx) })
	return nil
}

// ID returns the node's id.
func (n *Node) ID() string { return n.cfg.ID }

// Addr returns the address at which the other nodes and clients reach this one.
func (n *Node) Addr() string { return n.addr }

// Owner returns the owner name of the service that embeds this node: its id and
// this run of its process. Leases of this owner, and of owners that begin with it
// and a slash, are freed at once when the node starts again after a crash,
// without waiting for their ttl.
func (n *Node) Owner() string { return n.cfg.ID + "/" + n.run.Session() }

// JobOwner returns an owner name that nobody else has, for one of several jobs
// that compete for one name within this process.
func (n *Node) JobOwner() string { return n.Owner() + "/" + strconv.FormatUint(n.jobs.Add(1), 10) }

// session is how this process is named in the records of its own leases.
func (n *Node) session() *pb.Session {
	return &pb.Session{Node: n.run.Node, Disk: n.run.Disk, Incarnation: n.run.Incarnation}
}

// Ready waits until the node is in a cluster whose leader it knows. It returns
// an error when ctx ends first or the node closes.
func (n *Node) Ready(ctx context.Context) error {
	for {
		m, change := n.current()
		if m != nil {
			if leader, _ := m.leader(); leader != "" && (leader != n.cfg.ID || m.serving() != nil) {
				return nil
			}
		}
		select {
		case <-change:
		case <-ctx.Done():
			return fmt.Errorf("wait for cluster: %w", n.gaveUp(ctx, false))
		case <-n.ctx.Done():
			return fmt.Errorf("wait for cluster: %w", context.Cause(n.ctx))
		}
	}
}

// Hold implements lease.Drainer: Close closes drain and then waits until release
// was called, for as long as Config.DrainTimeout.
func (n *Node) Hold() (drain <-chan struct{}, release func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.holds++
	return n.drain, sync.OnceFunc(func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.holds--
		if n.holds == 0 && n.released != nil {
			close(n.released)
			n.released = nil
		}
	})
}

// Done is closed when the node has stopped, by Close or because it had to.
func (n *Node) Done() <-chan struct{} { return n.done }

// Err returns why the node stopped by itself: a disk that failed, an entry that
// it cannot read, its removal from the cluster. Nil while it runs and after
// Close.
func (n *Node) Err() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.failure
}

// Close asks running jobs to return and waits for them (Config.DrainTimeout),
// hands leadership over and stops. Calls under way return ErrClosed. Grants that
// were acquired by hand and not released stay until their ttl. Holders on other
// nodes notice nothing. Idempotent; it returns when everything has stopped.
func (n *Node) Close() error {
	n.drainJobs()
	return n.shutdown(lease.ErrClosed)
}

func (n *Node) drainJobs() {
	n.mu.Lock()
	if !n.draining {
		n.draining = true
		close(n.drain)
	}
	if n.holds == 0 {
		n.mu.Unlock()
		return
	}
	if n.released == nil {
		n.released = make(chan struct{})
	}
	released := n.released
	n.mu.Unlock()
	late := time.NewTimer(n.cfg.DrainTimeout)
	defer late.Stop()
	select {
	case <-released:
	case <-late.C:
		n.log.Warn("jobs have not returned, closing all the same", "waited", n.cfg.DrainTimeout)
	case <-n.ctx.Done():
	}
}

// fail stops the node because of err. It does not wait.
func (n *Node) fail(err error) {
	n.mu.Lock()
	first := n.failure == nil && n.ctx.Err() == nil
	if first {
		n.failure = err
	}
	n.mu.Unlock()
	if !first {
		return
	}
	n.log.Error("node has to stop", "err", err)
	n.cancel(fmt.Errorf("%w: %w", lease.ErrClosed, err))
	go func() { // ends with the node: whoever closes it waits for the same
		<-n.opened
		if err := n.Close(); err != nil {
			n.log.Error("stop node", "err", err)
		}
	}()
}

// shutdown stops everything from the API down, once. Leadership goes first, so
// that the others need no election.
func (n *Node) shutdown(cause error) error {
	n.stop.Do(func() {
		n.cancel(cause)
		n.background.Wait()
		var errs []error
		if n.member != nil {
			n.member.handOver()
			errs = append(errs, n.member.stop(n.cfg.DiskTimeout+serverWait))
		}
		if n.server != nil {
			ctx, cancel := context.WithTimeout(context.Background(), serverWait)
			errs = append(errs, n.server.Close(ctx))
			cancel()
		}
		if n.mux != nil {
			errs = append(errs, n.mux.Close())
		}
		n.serving.Wait()
		if n.clients != nil {
			n.clients.Close()
		}
		if n.disk != nil {
			errs = append(errs, n.disk.Close())
		}
		n.stopErr = errors.Join(errs...)
		close(n.done)
	})
	return n.stopErr
}

// handOver gives leadership to another voter, if this node leads.
func (m *member) handOver() {
	r := m.raft.Load()
	servers, _ := m.servers()
	if r.State() != raft.Leader || voters(servers) < 2 {
		return
	}
	done := make(chan error, 1)
	f := r.LeadershipTransfer()
	go func() { done <- f.Error() }() // raft answers at the latest when it stops
	late := time.NewTimer(transferLimit)
	defer late.Stop()
	select {
	case err := <-done:
		if err != nil {
			m.n.log.Warn("hand leadership over", "err", err)
		}
	case <-late.C:
		m.n.log.Warn("hand leadership over", "err", "no answer", "waited", transferLimit)
	}
}
