package raftlease

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/raftlease/raftlease/lease"
)

// Config says how to open a Node. ID, Dir and Listen are required, everything
// else has a useful zero value.
type Config struct {
	// ID names the node within its cluster, for ever. 1 to 64 bytes of
	// letters, digits, dot, underscore and hyphen.
	ID string

	// Dir is the node's data directory, made when it is missing. One process
	// at a time has it. It holds the node's vote: losing it means that the node
	// has to be removed from the cluster and rejoined.
	Dir string

	// Listen is the address, host:port, of the one port for everything. Port 0
	// takes a free one, for a cluster of one.
	Listen string

	// Advertise is the address at which the other nodes reach this one.
	// Defaults to the address listened on, whose host must then be specific.
	Advertise string

	// Peers maps the ids of all nodes that form the cluster to their
	// addresses; this node may be among them. Every node has to have the same
	// peers. Without Peers and Join the node forms a cluster of one. Once the
	// cluster is formed, Peers is no longer read.
	Peers map[string]string

	// Join is the address of any member of a cluster that this node shall join
	// as a new member. Not together with Peers. Once joined it is no longer
	// read.
	Join string

	// Insecure allows an address that is not loopback. Traffic is not
	// encrypted and peers are not authenticated: only for a network in which
	// every host is trusted.
	Insecure bool

	// Limits bound the ttl of leases. The zero value means 1 s to 24 h. All
	// nodes should have the same.
	Limits lease.Limits

	// Timing sets how soon a dead leader is noticed. Defaults to
	// TimingDefault. All nodes should have the same.
	Timing Timing

	// DiskTimeout is the longest time one write may take. A disk that is slower
	// is treated as failed: the node stops leading and closes. Defaults to 4 s.
	DiskTimeout time.Duration

	// DrainTimeout bounds how long Close waits for running jobs to return
	// (lease.Drainer). Defaults to 10 s.
	DrainTimeout time.Duration

	// Logger takes the node's log. Defaults to none.
	Logger hclog.Logger
}

// Timing is a set of raft's timeouts.
type Timing int

const (
	// TimingDefault elects a new leader about 1.1 s after the old one died, and
	// keeps a leader on a busy host.
	TimingDefault Timing = iota
	// TimingFast elects one after about 0.4 s. For hosts that are never
	// starved of CPU.
	TimingFast
)

// timeouts are the values behind a Timing.
type timeouts struct{ heartbeat, election, leaderLease, commit time.Duration }

func (t Timing) timeouts() timeouts {
	if t == TimingFast {
		return timeouts{200 * time.Millisecond, 200 * time.Millisecond, 100 * time.Millisecond, 20 * time.Millisecond}
	}
	return timeouts{500 * time.Millisecond, 500 * time.Millisecond, 250 * time.Millisecond, 50 * time.Millisecond}
}

const (
	maxIDLen            = 64
	defaultDiskTimeout  = 4 * time.Second
	defaultDrainTimeout = 10 * time.Second
	minLimit            = time.Millisecond
	maxLimit            = 365 * 24 * time.Hour
)

// Validate reports everything that is wrong with c at once, as a
// *lease.InvalidError with the names of the fields.
func (c Config) Validate() error {
	var f lease.Faults
	checkID(&f, "ID", c.ID)
	if c.Dir == "" {
		f.Add("Dir", c.Dir, "the path of a directory of this node's own")
	}
	checkAddress(&f, "Listen", c.Listen, true)
	if c.Advertise != "" {
		checkAddress(&f, "Advertise", c.Advertise, false)
	}
	if c.Join != "" {
		checkAddress(&f, "Join", c.Join, false)
		if len(c.Peers) > 0 {
			f.Add("Join", c.Join, "empty when Peers is set: a node either forms a cluster or joins one")
		}
	}
	seen := map[string]string{}
	for _, id := range slices.Sorted(maps.Keys(c.Peers)) {
		checkID(&f, "Peers", id)
		checkAddress(&f, "Peers["+id+"]", c.Peers[id], false)
		if other, twice := seen[c.Peers[id]]; twice {
			f.Add("Peers["+id+"]", c.Peers[id], "an address that "+other+" does not have")
		}
		seen[c.Peers[id]] = id
	}
	if own := c.Peers[c.ID]; own != "" && c.Advertise != "" && own != c.Advertise {
		f.Add("Advertise", c.Advertise, "the address that Peers has for this node, "+own+", or empty")
	}
	if len(c.Peers) > 0 && c.Advertise == "" && c.Peers[c.ID] == "" && portOf(c.Listen) == "0" {
		f.Add("Listen", c.Listen, "a fixed port when there are peers, so that they can find this node")
	}
	l := c.Limits.WithDefaults()
	if l.MinTTL < minLimit || l.MinTTL > l.MaxTTL || l.MaxTTL > maxLimit {
		f.Add("Limits", fmt.Sprintf("%v to %v", l.MinTTL, l.MaxTTL), fmt.Sprintf("within %v to %v, the smaller first", minLimit, maxLimit))
	}
	if c.Timing != TimingDefault && c.Timing != TimingFast {
		f.Add("Timing", int(c.Timing), "TimingDefault or TimingFast")
	}
	if c.DiskTimeout < 0 {
		f.Add("DiskTimeout", c.DiskTimeout, "0 or more")
	}
	if c.DrainTimeout < 0 {
		f.Add("DrainTimeout", c.DrainTimeout, "0 or more")
	}
	return f.Err()
}

// withDefaults returns a copy that shares no map with c.
func (c Config) withDefaults() Config {
	c.Peers = maps.Clone(c.Peers)
	c.Limits = c.Limits.WithDefaults()
	if c.DiskTimeout == 0 {
		c.DiskTimeout = defaultDiskTimeout
	}
	if c.DrainTimeout == 0 {
		c.DrainTimeout = defaultDrainTimeout
	}
	if c.Logger == nil {
		c.Logger = hclog.NewNullLogger()
	}
	return c
}

func checkID(f *lease.Faults, field, id string) {
	ok := id != "" && len(id) <= maxIDLen && strings.IndexFunc(id, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-", r))
	}) < 0
	if !ok {
		f.Add(field, id, fmt.Sprintf("1 to %d letters, digits, dots, underscores or hyphens", maxIDLen))
	}
}

func checkAddress(f *lease.Faults, field, addr string, listen bool) {
	host, port, err := net.SplitHostPort(addr)
	switch {
	case err != nil:
		f.Add(field, addr, "host:port")
	case listen:
	case host == "" || net.ParseIP(host).IsUnspecified():
		f.Add(field, addr, "a host that other nodes can dial, not a wildcard")
	case port == "" || port == "0":
		f.Add(field, addr, "a fixed port")
	}
}

func portOf(addr string) string {
	_, port, _ := net.SplitHostPort(addr)
	return port
}
