package raftlease

import (
	"maps"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/raftlease/raftlease/internal/foundation"
	"github.com/raftlease/raftlease/transport/memnet"
)

// G1, G3, G4: whichever direction of the leader's links is cut, nobody else is
// granted its lease before the holder on its side has been told by its own clock
// that it is over. The real node, raft and disk run on a network in memory and in
// virtual time.
func TestNode_LeaderCutOff(t *testing.T) {
	for _, cut := range []struct {
		what         string
		toIt, fromIt bool
	}{
		{"in both directions", true, true},
		{"from the others", true, false},
		{"towards the others", false, true},
	} {
		t.Run(cut.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				network := memnet.New()
				c := prepare(t, "a", "b", "c")
				for id := range c.peers {
					c.peers[id] = id + ":7400"
				}
				for _, id := range slices.Sorted(maps.Keys(c.peers)) {
					on := foundation.Machine(filepath.Join(c.dir, id))
					on.Network = network.Host(id)
					n, err := OpenOn(c.config(id), on)
					if err != nil {
						t.Fatal(err)
					}
					c.nodes[id] = n
				}
				c.ready()
				lead := c.leader()
				g := acquire(t, lead, "cut", "inside")
				for id := range c.peers {
					if id != lead.ID() {
						network.SetLink(id, lead.ID(), memnet.Link{Cut: cut.toIt})
						network.SetLink(lead.ID(), id, memnet.Link{Cut: cut.fromIt})
					}
				}
				other := c.nodes[map[string]string{"a": "b", "b": "c", "c": "a"}[lead.ID()]]
				next, err := other.AcquireWait(testContext(t), "cut", "outside", ttl)
				if err != nil {
					t.Fatalf("acquire on the other side: %v", err)
				}
				if err := g.Check(); err == nil {
					t.Error("G4: the holder on the leader's side still believes in its grant, and another has one")
				}
				if next.Token <= g.Token {
					t.Errorf("G2: token %d after %d", next.Token, g.Token)
				}
				for id := range c.peers {
					network.SetLink(id, lead.ID(), memnet.Link{})
					network.SetLink(lead.ID(), id, memnet.Link{})
				}
				c.eventually("the node that was cut off knows the new holder", func() bool {
					r, err := lead.Get(testContext(t), "cut")
					return err == nil && r.Owner == "outside" && r.Token == next.Token
				})
				for id, n := range c.nodes {
					if err := n.Close(); err != nil {
						t.Errorf("close node %s: %v", id, err)
					}
				}
			})
		})
	}
}
