package raftlease

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/raftlease/raftlease/lease"
)

const ttl = 10 * time.Second

func acquire(t testing.TB, n *Node, name, owner string) lease.Grant {
	t.Helper()
	g, err := n.Acquire(testContext(t), name, owner, ttl)
	if err != nil {
		t.Fatalf("acquire at node %s: %v", n.ID(), err)
	}
	return g
}

// G3, G5: a leader that closes hands its cluster over; calls under way on the
// other nodes succeed and no grant is lost.
func TestNode_CloseIsInvisibleToTheOthers(t *testing.T) {
	c := openCluster(t, "a", "b", "c")
	leader := c.leader()
	others := []*Node{}
	for _, n := range c.nodes {
		if n != leader {
			others = append(others, n)
		}
	}
	ctx, stop := context.WithCancel(testContext(t))
	defer stop()
	var wg sync.WaitGroup
	var mu sync.Mutex
	longest, renewals := time.Duration(0), 0
	for i := range 8 {
		n := others[i%2]
		g := acquire(t, n, fmt.Sprint("job ", i), "owner")
		wg.Go(func() {
			for ctx.Err() == nil {
				start := time.Now()
				next, err := n.Renew(ctx, g, ttl)
				if ctx.Err() != nil {
					return
				}
				if err != nil || next.Check() != nil {
					t.Errorf("renew at node %s while the leader closes: %v, %v", n.ID(), err, next.Check())
					return
				}
				mu.Lock()
				longest, renewals = max(longest, time.Since(start)), renewals+1
				mu.Unlock()
				g = next
			}
		})
	}
	c.eventually("some renewals", func() bool { mu.Lock(); defer mu.Unlock(); return renewals > 50 })
	c.close(leader)
	next := c.leader()
	mu.Lock()
	before := renewals
	mu.Unlock()
	c.eventually("more renewals", func() bool { mu.Lock(); defer mu.Unlock(); return renewals > before+50 })
	stop()
	wg.Wait()
	t.Logf("%s handed over to %s: %d renewals, the longest took %v", leader.ID(), next.ID(), renewals, longest)
}

// Renewals are answered from memory: ten thousand add no entry to the log.
func TestNode_RenewalsWriteNothing(t *testing.T) {
	c := openCluster(t, "a", "b", "c")
	ctx := testContext(t)
	leader, follower := c.leader(), c.follower()
	var grants []lease.Grant
	for i := range 100 {
		grants = append(grants, acquire(t, leader, fmt.Sprint("job ", i), "owner"))
	}
	c.eventually("everything is applied everywhere", func() bool {
		want := leader.Status().LastIndex
		for _, n := range c.nodes {
			if s := n.Status(); s.AppliedIndex != want || s.LastIndex != want {
				return false
			}
		}
		return true
	})
	before := leader.Status()
	var wg sync.WaitGroup
	for i, g := range grants {
		n := leader
		if i%2 == 0 {
			n = follower
		}
		wg.Go(func() {
			for range 100 {
				var err error
				if g, err = n.Renew(ctx, g, ttl); err != nil {
					t.Errorf("renew: %v", err)
					return
				}
			}
		})
	}
	wg.Wait()
	after := leader.Status()
	if after.Term != before.Term {
		t.Skipf("the leader changed during the test, from term %d to %d", before.Term, after.Term)
	}
	if after.LastIndex != before.LastIndex {
		t.Errorf("the log grew by %d entries, want 0", after.LastIndex-before.LastIndex)
	}
}

// Under load one log entry carries many commands.
func TestNode_PacksCommands(t *testing.T) {
	c := openCluster(t, "a", "b", "c")
	ctx := testContext(t)
	leader, follower := c.leader(), c.follower()
	before := leader.Status().LastIndex
	const callers, each = 64, 20
	var wg sync.WaitGroup
	for i := range callers {
		n := []*Node{leader, follower}[i%2]
		wg.Go(func() {
			for j := range each {
				if _, err := n.Acquire(ctx, fmt.Sprint(i, "/", j), "owner", ttl); err != nil {
					t.Errorf("acquire: %v", err)
					return
				}
			}
		})
	}
	wg.Wait()
	entries := leader.Status().LastIndex - before
	t.Logf("%d grants in %d entries", callers*each, entries)
	if entries > callers*each/2 {
		t.Errorf("%d grants took %d entries, want far fewer", callers*each, entries)
	}
}

// G1, G2, G5: everything acknowledged is there after all nodes were closed and
// opened again, and tokens go on rising.
func TestNode_KeepsGrantsOverARestart(t *testing.T) {
	c := openCluster(t, "a", "b", "c")
	ctx := testContext(t)
	held := acquire(t, c.nodes["a"], "held", "somebody")
	if err := c.nodes["b"].Put(ctx, held, []byte("checkpoint")); err != nil {
		t.Fatal(err)
	}
	for _, n := range []*Node{c.nodes["a"], c.nodes["b"], c.nodes["c"]} {
		c.close(n)
	}
	for id := range c.peers {
		c.start(id)
	}
	c.ready()
	r, err := c.nodes["c"].Get(ctx, "held")
	if err != nil || r.Owner != "somebody" || r.Token != held.Token || string(r.Data) != "checkpoint" {
		t.Fatalf("after the restart: %+v, %v", r, err)
	}
	if _, err := c.nodes["a"].Acquire(ctx, "held", "another", ttl); !errors.Is(err, lease.ErrHeld) {
		t.Errorf("acquire what another holds: %v, want %v", err, lease.ErrHeld)
	}
	if g := acquire(t, c.nodes["b"], "other", "another"); g.Token <= held.Token {
		t.Errorf("token %d after %d", g.Token, held.Token)
	}
}

// What a node had for its own service is free as soon as it starts again; what
// others had stays.
func TestNode_ReclaimsWhatItsFormerProcessHad(t *testing.T) {
	c := openCluster(t, "a", "b", "c")
	ctx := testContext(t)
	n := c.follower()
	own, job := n.Owner(), n.JobOwner()
	for name, owner := range map[string]string{"own": own, "job": job, "foreign": "somebody else"} {
		if _, err := n.Acquire(ctx, name, owner, time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	c.close(n)
	again := c.start(n.ID())
	if again.Owner() == own {
		t.Errorf("owner is %q in both runs", own)
	}
	for _, name := range []string{"own", "job"} {
		if _, err := again.AcquireWait(ctx, name, again.Owner(), ttl); err != nil {
			t.Errorf("acquire %q: %v", name, err)
		}
	}
	if _, err := again.Acquire(ctx, "foreign", again.Owner(), ttl); !errors.Is(err, lease.ErrHeld) {
		t.Errorf("acquire another's: %v, want %v", err, lease.ErrHeld)
	}
}

// G6: without a majority nothing is done, and the error says that.
func TestNode_WithoutAMajority(t *testing.T) {
	c := openCluster(t, "a", "b", "c")
	leader := c.leader()
	g := acquire(t, leader, "job", "owner")
	for _, n := range []*Node{c.nodes["a"], c.nodes["b"], c.nodes["c"]} {
		if n != leader {
			c.close(n)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	_, err := leader.Renew(ctx, g, ttl)
	if errors.Is(err, lease.ErrLost) || !errors.Is(err, lease.ErrUnavailable) && !errors.Is(err, lease.ErrUnknownOutcome) {
		t.Errorf("renew: %v, want unavailable or unknown", err)
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("renew: %v, want also %v", err, context.DeadlineExceeded)
	}
	t.Log(err)
	if _, err := leader.Get(ctx, "job"); !errors.Is(err, lease.ErrUnavailable) {
		t.Errorf("get: %v, want %v", err, lease.ErrUnavailable)
	}
	if r, index, err := leader.GetStale(context.Background(), "job"); err != nil || r.Token != g.Token || index == 0 {
		t.Errorf("stale read: %+v at %d, %v", r, index, err)
	}
}

func TestNode_Transfer(t *testing.T) {
	c := openCluster(t, "a", "b", "c")
	ctx := testContext(t)
	for _, to := range []string{"a", "b", "c", "c"} {
		got, err := c.nodes["b"].Transfer(ctx, to)
		if err != nil || got != to {
			t.Fatalf("transfer to %s: %q, %v", to, got, err)
		}
		acquire(t, c.nodes["a"], "job", "owner")
	}
	before := c.leader()
	got, err := before.Transfer(ctx, "")
	if err != nil || got == before.ID() || got == "" {
		t.Errorf("transfer to anybody: %q, %v", got, err)
	}
	if _, err := c.nodes["a"].Transfer(ctx, "nobody"); !errors.Is(err, lease.ErrInvalid) {
		t.Errorf("transfer to nobody: %v, want %v", err, lease.ErrInvalid)
	}
}
