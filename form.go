package raftlease

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/raftlease/raftlease/internal/raftstore"
	pb "github.com/raftlease/raftlease/transport/rpc/raftleasev1"
)

const (
	helloTimeout = time.Second
	helloPause   = 200 * time.Millisecond
)

// tryToEnter asks the others once and enters the cluster if they agree. An error
// is one that trying again does not cure.
func (n *Node) tryToEnter(ctx context.Context) (done bool, err error) {
	find := n.form
	if n.cfg.Join != "" {
		find = n.join
	}
	id, found, err := find(ctx)
	if err != nil || !found {
		return false, err
	}
	return true, n.enter(id)
}

// keepTrying repeats tryToEnter until it is done or ctx ends.
func (n *Node) keepTrying(ctx context.Context) error {
	for {
		pause := time.NewTimer(helloPause)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return context.Cause(ctx)
		}
		if done, err := n.tryToEnter(ctx); done || err != nil {
			return err
		}
	}
}

// form asks all peers once. A cluster is formed when every one of them is empty
// and has the same peers; all founders then find the same cluster id, because it
// is made from their disks. A founder that comes late finds its own disk in what
// the others report. Anybody else with an empty disk has lost one: it must not
// vote again, because it has forgotten how it voted (case 29).
func (n *Node) form(ctx context.Context) (raftstore.Identity, bool, error) {
	id, peers := n.run, n.peers()
	founders := map[string]string{n.cfg.ID: id.Disk}
	var missing []string
	for peer, a := range n.greet(ctx, peers) {
		if a == nil {
			missing = append(missing, fmt.Sprintf("%s at %s", peer, peers[peer]))
			continue
		}
		switch {
		case a.Id != peer:
			return id, false, fmt.Errorf("field Peers has node %q at %q, where node %q answers: correct the address", peer, peers[peer], a.Id)
		case a.Disk == id.Disk:
			return id, false, fmt.Errorf("node %q runs on a copy of this node's data directory: give each node a directory of its own", peer)
		case a.ClusterId != "" && a.Founders[n.cfg.ID] == id.Disk:
			id.Cluster, id.Founders, id.Peers = a.ClusterId, a.Founders, a.Peers
			return id, true, nil
		case a.ClusterId != "":
			return id, false, n.wiped(a.ClusterId, peer, peers[peer])
		case !maps.Equal(a.Peers, peers):
			return id, false, fmt.Errorf("field Peers differs: node %q has %s, this node has %s: give all nodes the same",
				peer, describe(a.Peers), describe(peers))
		}
		founders[peer] = a.Disk
	}
	if len(missing) > 0 {
		slices.Sort(missing)
		n.waitFor("the cluster forms when all its peers are up, waiting for " + strings.Join(missing, ", "))
		return id, false, nil
	}
	id.Cluster, id.Founders, id.Peers = clusterID(founders), founders, peers
	return id, true, nil
}

func (n *Node) wiped(cluster, peer, addr string) error {
	return fmt.Errorf("data directory is empty, but node %q at %q is in cluster %q already: a member that lost its disk "+
		"must not vote again. Remove node %q from the cluster if it is still a member (raftlease cluster remove %s --addr %s), then start it "+
		"with the empty directory, without Peers and with Join %s", peer, addr, cluster, n.cfg.ID, n.cfg.ID, addr, addr)
}

// greet says hello to all peers at once; nil is the answer of one that gave
// none.
func (n *Node) greet(ctx context.Context, peers map[string]string) map[string]*pb.HelloResponse {
	ctx, cancel := context.WithTimeout(ctx, helloTimeout)
	defer cancel()
	var mu sync.Mutex
	var wg sync.WaitGroup
	answers := map[string]*pb.HelloResponse{}
	for id, addr := range peers {
		if id == n.cfg.ID {
			continue
		}
		wg.Go(func() {
			a, err := n.clients.Peer(addr).Hello(ctx, n.hello())
			if err != nil {
				n.log.Debug("say hello", "peer", id, "addr", addr, "err", err)
				a = nil
			}
			mu.Lock()
			defer mu.Unlock()
			answers[id] = a
		})
	}
	wg.Wait()
	return answers
}

func (n *Node) hello() *pb.HelloRequest {
	return &pb.HelloRequest{From: n.cfg.ID, Disk: n.run.Disk, Peers: n.peers()}
}

// join asks the member at Config.Join once.
func (n *Node) join(ctx context.Context) (raftstore.Identity, bool, error) {
	id, addr := n.run, n.cfg.Join
	ctx, cancel := context.WithTimeout(ctx, helloTimeout)
	defer cancel()
	a, err := n.clients.Peer(addr).Hello(ctx, n.hello())
	switch {
	case err != nil:
		n.waitFor(fmt.Sprintf("no member answers at %q, which Join names: %v", addr, err))
		return id, false, nil
	case a.Id == n.cfg.ID:
		return id, false, fmt.Errorf("at %q, which Join names, answers a node with this node's own id %q: "+
			"Join is the address of another node, and every node has an id of its own", addr, a.Id)
	case a.ClusterId == "":
		n.waitFor(fmt.Sprintf("node %q at %q, which Join names, is in no cluster yet", a.Id, addr))
		return id, false, nil
	}
	st, err := n.clients.Cluster(addr).Status(ctx, &pb.StatusRequest{})
	if err != nil || len(st.Members) == 0 {
		n.waitFor(fmt.Sprintf("node %q at %q does not tell the members: %v", a.Id, addr, err))
		return id, false, nil
	}
	for _, m := range st.Members {
		if m.Id == n.cfg.ID {
			return id, false, n.wiped(a.ClusterId, a.Id, addr)
		}
	}
	id.Cluster = a.ClusterId
	return id, true, nil
}

// peers returns the configured peers and this node.
func (n *Node) peers() map[string]string {
	all := map[string]string{n.cfg.ID: n.addr}
	maps.Copy(all, n.cfg.Peers)
	return all
}

// waitFor remembers what keeps the node out of a cluster, and logs it once.
func (n *Node) waitFor(what string) {
	n.mu.Lock()
	news := n.missing != what
	n.missing = what
	n.mu.Unlock()
	if news {
		n.log.Info("not in a cluster yet", "waiting", what)
	}
}

// waiting says what keeps the node out of a cluster.
func (n *Node) waiting() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.missing == "" {
		return "the node is not in a cluster yet"
	}
	return n.missing
}

// clusterID names the cluster that these disks form.
func clusterID(founders map[string]string) string {
	h := sha256.New()
	for _, id := range sortedKeys(founders) {
		fmt.Fprintf(h, "%q %q\n", id, founders[id])
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

func describe(peers map[string]string) string {
	var parts []string
	for _, id := range sortedKeys(peers) {
		parts = append(parts, id+"="+peers[id])
	}
	return strings.Join(parts, ",")
}

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
