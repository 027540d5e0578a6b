// Package foundation names what a node stands on, so that a simulation can put a
// network, a disk and clocks of its own under the same code that runs on a real
// machine.
package foundation

import (
	"github.com/raftlease/raftlease/internal/clock"
	"github.com/raftlease/raftlease/internal/raftstore"
	"github.com/raftlease/raftlease/transport"
)

// Foundation is what a node stands on. All of it is required.
type Foundation struct {
	Network transport.Network
	Disk    raftstore.Disk
	Holder  clock.Holder  // anchors the grants that this node takes
	Granter clock.Granter // times the grants that it gives while it leads
}

// Machine returns the real one, with the data directory dir.
func Machine(dir string) Foundation {
	return Foundation{
		Network: transport.TCP(),
		Disk:    raftstore.Directory(dir),
		Holder:  clock.System(),
		Granter: clock.Monotonic(),
	}
}
