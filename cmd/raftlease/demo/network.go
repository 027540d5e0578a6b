package demo

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"
)

const whoseLimit = 3 * time.Second // for finding out who dials

// network is the wires between the nodes: each node is reached only through a
// link of it, and one that is cut off neither sends nor receives a byte. Nothing
// is torn down then, as in a network that drops packets, and what waits goes on
// when the cut is healed. Safe for concurrent use.
type network struct {
	ask func(port, peer int) // asks all children whose connection that is

	ctx    context.Context // ends with close
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu      sync.Mutex
	cut     map[string]bool
	changed chan struct{} // closed when cut changes
	back    map[string]string
	asked   map[[2]int]chan string // by port and peer
	links   []net.Listener
}

func newNetwork(ask func(port, peer int)) *network {
	n := &network{
		ask: ask, cut: map[string]bool{}, changed: make(chan struct{}),
		back: map[string]string{}, asked: map[[2]int]chan string{},
	}
	n.ctx, n.cancel = context.WithCancel(context.Background())
	return n
}

// link makes the link to a node and returns its address.
func (n *network) link(to string) (string, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("listen for the link to node %s: %w", to, err)
	}
	n.mu.Lock()
	n.links = append(n.links, ln)
	n.mu.Unlock()
	n.work.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			n.work.Go(func() { n.carry(conn, to) })
		}
	})
	return ln.Addr().String(), nil
}

// leads sets where the link to a node leads.
func (n *network) leads(to, addr string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.back[to] = addr
}

// set cuts a node off, or heals the cut.
func (n *network) set(node string, cut bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cut[node] = cut
	close(n.changed)
	n.changed = make(chan struct{})
}

// close ends all links and waits until nothing is carried.
func (n *network) close() {
	n.cancel()
	n.mu.Lock()
	for _, ln := range n.links {
		ln.Close()
	}
	n.mu.Unlock()
	n.work.Wait()
}

// carry connects conn to a node.
func (n *network) carry(conn net.Conn, to string) {
	defer conn.Close()
	defer context.AfterFunc(n.ctx, func() { conn.Close() })()
	from, ok := n.whose(conn)
	if !ok || !n.open(from, to) {
		return
	}
	n.mu.Lock()
	addr := n.back[to]
	n.mu.Unlock()
	var d net.Dialer
	node, err := d.DialContext(n.ctx, "tcp", addr)
	if err != nil {
		return // as if there were no link in between
	}
	defer node.Close()
	defer context.AfterFunc(n.ctx, func() { node.Close() })()
	var both sync.WaitGroup
	both.Go(func() { n.copy(node, conn, from, to) })
	both.Go(func() { n.copy(conn, node, from, to) })
	both.Wait()
}

// copy carries one direction. What ends one ends both: none of the protocols
// goes on with half a connection.
func (n *network) copy(dst, src net.Conn, from, to string) {
	defer dst.Close()
	defer src.Close()
	buf := make([]byte, 32<<10)
	for {
		k, err := src.Read(buf)
		if !n.open(from, to) {
			return
		}
		if k > 0 {
			if _, err := dst.Write(buf[:k]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// open waits until neither node is cut off; false when the network was closed.
func (n *network) open(from, to string) bool {
	for {
		n.mu.Lock()
		cut, changed := n.cut[from] || n.cut[to], n.changed
		n.mu.Unlock()
		if !cut {
			return n.ctx.Err() == nil
		}
		select {
		case <-changed:
		case <-n.ctx.Done():
			return false
		}
	}
}

// whose finds out which node has dialled conn. A connection between processes of
// one machine does not tell, so they are asked.
func (n *network) whose(conn net.Conn) (string, bool) {
	key := [2]int{conn.RemoteAddr().(*net.TCPAddr).Port, conn.LocalAddr().(*net.TCPAddr).Port}
	answer := make(chan string, 1)
	n.mu.Lock()
	n.asked[key] = answer
	n.mu.Unlock()
	defer func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		if n.asked[key] == answer {
			delete(n.asked, key)
		}
	}()
	n.ask(key[0], key[1])
	late := time.NewTimer(whoseLimit)
	defer late.Stop()
	select {
	case node := <-answer:
		return node, true
	case <-late.C:
	case <-n.ctx.Done():
	}
	return "", false
}

// mine takes the answer of a node that it has dialled a connection.
func (n *network) mine(node string, port, peer int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if answer := n.asked[[2]int{port, peer}]; answer != nil {
		delete(n.asked, [2]int{port, peer})
		answer <- node
	}
}
