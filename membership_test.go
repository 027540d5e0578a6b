package raftlease

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/raftlease/raftlease/lease"
)

// joined opens a node that joins the cluster through one of its members.
func (c *testCluster) joined(id string) *Node {
	c.t.Helper()
	c.peers[id] = freeAddr(c.t)
	n, err := Open(Config{
		ID: id, Dir: filepath.Join(c.dir, id), Listen: c.peers[id], Join: c.follower().Addr(), Logger: testLogger(c.t),
	})
	if err != nil {
		c.t.Fatal(err)
	}
	c.nodes[id] = n
	return n
}

func TestNode_JoinsAndBecomesAVoter(t *testing.T) {
	c := openCluster(t, "a", "b", "c")
	held := acquire(t, c.nodes["a"], "held", "somebody")
	d := c.joined("d")
	c.eventually("the new node has a vote", func() bool { return isVoter(c.leader(), "d") })
	r, err := d.Get(testContext(t), "held")
	if err != nil || r.Token != held.Token {
		t.Errorf("the new node reads %+v, %v", r, err)
	}
	if leader, err := d.Transfer(testContext(t), "d"); err != nil || leader != "d" {
		t.Errorf("transfer to the new node: %q, %v", leader, err)
	}
	if g := acquire(t, d, "other", "d"); g.Token <= held.Token {
		t.Errorf("token %d after %d", g.Token, held.Token)
	}
	// It comes back without Join.
	c.close(d)
	again, err := Open(Config{ID: "d", Dir: filepath.Join(c.dir, "d"), Listen: c.peers["d"], Logger: testLogger(t)})
	if err != nil {
		t.Fatal(err)
	}
	c.nodes["d"] = again
	acquire(t, again, "third", "d")
}

// A member that comes back at another address tells the others.
func TestNode_MovesToAnotherAddress(t *testing.T) {
	c := openCluster(t, "a", "b", "c")
	n := c.follower()
	c.close(n)
	c.peers[n.ID()] = freeAddr(t)
	moved := c.start(n.ID())
	c.eventually("everybody knows the new address", func() bool {
		for _, n := range c.nodes {
			for _, m := range n.Status().Members {
				if m.ID == moved.ID() && m.Address != moved.Addr() {
					return false
				}
			}
		}
		return true
	})
	if !isVoter(c.leader(), moved.ID()) {
		t.Error("it has lost its vote")
	}
	acquire(t, moved, "job", "owner")
}

// Case 9: a member that is removed stops; what it owns keeps its promise.
func TestNode_RemovedMemberStops(t *testing.T) {
	c := openCluster(t, "a", "b", "c")
	ctx := testContext(t)
	n := c.follower()
	g := acquire(t, n, "job", n.Owner())
	if err := n.RemoveMember(ctx, n.ID()); err != nil {
		t.Fatal(err)
	}
	delete(c.nodes, n.ID())
	stopped(t, n, "was removed from cluster", "Join")
	if g.Check() != nil {
		t.Skip("this machine took longer than the ttl")
	}
	if _, err := c.leader().Acquire(ctx, "job", "another", ttl); !errors.Is(err, lease.ErrHeld) && g.Check() == nil {
		t.Errorf("acquire what the removed member still has: %v, want %v", err, lease.ErrHeld)
	}
	if err := c.leader().RemoveMember(ctx, n.ID()); err != nil {
		t.Errorf("remove it again: %v", err)
	}
}

func TestNode_RemovedLeaderStops(t *testing.T) {
	c := openCluster(t, "a", "b", "c")
	n := c.leader()
	if err := c.follower().RemoveMember(testContext(t), n.ID()); err != nil {
		t.Fatal(err)
	}
	delete(c.nodes, n.ID())
	stopped(t, n, "was removed from cluster")
	acquire(t, c.leader(), "job", "owner")
}

func TestNode_MembershipRefuses(t *testing.T) {
	n := openOne(t, lease.Limits{})
	ctx := testContext(t)
	for _, c := range []struct {
		what string
		err  error
	}{
		{"a bad id", n.AddMember(ctx, "a b", "127.0.0.1:1")},
		{"a bad address", n.AddMember(ctx, "b", "0.0.0.0:1")},
		{"an address without a port", n.AddMember(ctx, "b", "127.0.0.1:0")},
		{"an address that another has", n.AddMember(ctx, "b", n.Addr())},
		{"removing the last voter", n.RemoveMember(ctx, "a")},
		{"a vote for a stranger", n.Promote(ctx, "b")},
		{"a transfer with nobody to go to", func() error { _, err := n.Transfer(ctx, ""); return err }()},
	} {
		if !errors.Is(c.err, lease.ErrInvalid) {
			t.Errorf("%s: %v, want %v", c.what, c.err, lease.ErrInvalid)
		}
	}
	if err := n.RemoveMember(ctx, "stranger"); err != nil {
		t.Errorf("remove a stranger: %v", err)
	}
	// A member that is not there must not get a vote: it would cost the majority.
	addr := freeAddr(t)
	if err := n.AddMember(ctx, "b", addr); err != nil {
		t.Fatal(err)
	}
	if err := n.Promote(ctx, "b"); !errors.Is(err, lease.ErrInvalid) {
		t.Errorf("a vote for a member that does not answer: %v, want %v", err, lease.ErrInvalid)
	}
	if err := n.AddMember(ctx, "b", addr); err != nil {
		t.Errorf("add it again: %v", err)
	}
	acquire(t, n, "job", "owner")
}

func TestNode_Break(t *testing.T) {
	c := openCluster(t, "a", "b", "c")
	ctx := testContext(t)
	g := acquire(t, c.leader(), "job", "owner")
	r, err := c.follower().Break(ctx, "job")
	if err != nil || r.Owner != "owner" || r.Token != g.Token {
		t.Errorf("break: %+v, %v", r, err)
	}
	var lost *lease.LostError
	if _, err := c.follower().Renew(ctx, g, ttl); !errors.As(err, &lost) || lost.Reason != lease.ReasonBroken {
		t.Errorf("renew after the break: %v, want reason %q", err, lease.ReasonBroken)
	}
	if _, err := c.follower().Break(ctx, "job"); !errors.Is(err, lease.ErrNotFound) {
		t.Errorf("break what nobody has: %v, want %v", err, lease.ErrNotFound)
	}
}
