package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/raftlease/raftlease/client"
	"github.com/raftlease/raftlease/lease"
)

// holder renews grants through a client until it is stopped, and says when one
// was lost.
type holder struct {
	wg   sync.WaitGroup
	stop context.CancelFunc

	mu      sync.Mutex
	longest time.Duration
	renewed int
}

func renewAll(t testing.TB, cl *client.Client, ttl time.Duration, names ...string) *holder {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	h := &holder{stop: stop}
	t.Cleanup(h.end)
	for _, name := range names {
		g, err := cl.Acquire(testContext(t), name, "client of "+name, ttl)
		if err != nil {
			t.Fatal(err)
		}
		h.wg.Go(func() { h.renew(ctx, t, cl, g, ttl) })
	}
	return h
}

func (h *holder) renew(ctx context.Context, t testing.TB, cl *client.Client, g lease.Grant, ttl time.Duration) {
	tick := time.NewTicker(ttl / 50)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		start := time.Now()
		next, err := cl.Renew(ctx, g, ttl)
		if ctx.Err() != nil {
			return
		}
		if err != nil || g.Check() != nil {
			t.Errorf("lost %q, with %v left: %v", g.Name, g.Remaining(), err)
			return
		}
		h.mu.Lock()
		h.longest, h.renewed = max(h.longest, time.Since(start)), h.renewed+1
		h.mu.Unlock()
		g = next
	}
}

func (h *holder) end() { h.stop(); h.wg.Wait() }

func (h *holder) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.renewed
}

// Case 4, G3, G5: the leader, which has a lease of its own, is killed. Holders at
// the other nodes keep theirs; the dead owner's goes to another after its ttl,
// and not before.
func TestProcesses_LeaderIsKilled(t *testing.T) {
	t.Parallel()
	const ttl = 6 * time.Second
	job := program{Job: "of the dead", TTL: ttl}
	c := start(t, map[string]program{"a": job, "b": job, "c": job}, "a", "b", "c")
	var leader *process
	c.eventually("some node has the job", func() bool {
		for id, p := range c.run {
			if p.count("renewed") > 3 {
				leader = c.run[id]
				return true
			}
		}
		return false
	})
	if _, err := c.client().Transfer(testContext(t), leader.id); err != nil {
		t.Fatal(err)
	}
	var others []string
	for id := range c.run {
		if id != leader.id {
			others = append(others, id)
		}
	}
	h := renewAll(t, c.client(others...), 15*time.Second, "kept 1", "kept 2", "kept 3")
	c.eventually("renewals", func() bool { return h.count() > 5 })

	killed := time.Now()
	c.kill(leader)
	if _, err := c.client(others...).Acquire(testContext(t), "first", "after the crash", ttl); err != nil {
		t.Fatal(err)
	}
	t.Logf("the first acquire after the crash was answered %v after it", time.Since(killed).Round(time.Millisecond))

	renewal, _ := leader.last("renewed")
	var next report
	c.eventually("another node has the job", func() bool {
		for _, id := range others {
			if r, ok := c.run[id].last("acquired"); ok && r.Token > renewal.Token {
				next = r
				return true
			}
		}
		return false
	})
	after := time.Since(time.Unix(0, renewal.Sent))
	t.Logf("the dead owner's name was granted again %v after its last renewal, ttl %v", after.Round(time.Millisecond), ttl)
	if after < ttl {
		t.Errorf("G3: %q was granted again %v after its renewal with ttl %v", job.Job, after, ttl)
	}
	if after > ttl+patience/2 {
		t.Errorf("%q was granted again only %v after its renewal with ttl %v", job.Job, after, ttl)
	}
	if next.Token <= renewal.Token {
		t.Errorf("G2: token %d after %d", next.Token, renewal.Token)
	}
	before := h.count()
	c.eventually("renewals", func() bool { return h.count() > before+5 })
	h.end()
	t.Logf("%d renewals meanwhile, the longest took %v", h.renewed, h.longest.Round(time.Millisecond))
}

// G5: what was acknowledged is there after all nodes were killed at once, and
// tokens go on rising.
func TestProcesses_AllAreKilled(t *testing.T) {
	t.Parallel()
	c := start(t, nil, "a", "b", "c")
	cl := c.client()
	var mu sync.Mutex
	granted := map[string]lease.Grant{}
	ctx, stop := context.WithCancel(testContext(t))
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := 0; ctx.Err() == nil; j++ {
				g, err := cl.Acquire(ctx, fmt.Sprint("job ", i, " ", j), "owner", time.Hour)
				if err == nil {
					mu.Lock()
					granted[g.Name] = g
					mu.Unlock()
				}
			}
		})
	}
	c.eventually("some grants", func() bool { mu.Lock(); defer mu.Unlock(); return len(granted) > 200 })
	for _, p := range []*process{c.run["a"], c.run["b"], c.run["c"]} {
		c.kill(p) // in the middle of it
	}
	stop()
	wg.Wait()

	c.startAll("a", "b", "c")
	records, err := cl.List(testContext(t), "job ")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]lease.Record{}
	highest := uint64(0)
	for _, r := range records {
		found[r.Name] = r
		highest = max(highest, r.Token)
	}
	for name, g := range granted {
		if r := found[name]; r.Token != g.Token || r.Owner != g.Owner {
			t.Errorf("G5: %q was granted with token %d; after the crash there is %+v", name, g.Token, r)
		}
	}
	t.Logf("%d acknowledged grants, %d records", len(granted), len(records))
	g, err := cl.Acquire(testContext(t), "next", "owner", time.Minute)
	if err != nil || g.Token <= highest {
		t.Errorf("G2: token %d after %d, %v", g.Token, highest, err)
	}
}

// Cases 1 and 21: the leader freezes, for longer than the ttl of what it has
// granted, while another leads and renews. When it goes on it ends nothing, and
// its own grant is over by its own clock.
func TestProcesses_LeaderFreezes(t *testing.T) {
	t.Parallel()
	const ttl = 3 * time.Second
	job := program{Job: "of the frozen", TTL: ttl}
	c := start(t, map[string]program{"a": job}, "a", "b", "c")
	frozen := c.run["a"]
	c.eventually("the job is held", func() bool { return frozen.count("renewed") > 0 })
	cl := c.client("b", "c")
	if _, err := cl.Transfer(testContext(t), "a"); err != nil {
		t.Fatal(err)
	}
	h := renewAll(t, cl, 10*time.Second, "kept")
	c.freeze(frozen)
	old, _ := frozen.last("renewed")
	g, err := cl.AcquireWait(testContext(t), job.Job, "successor", ttl)
	if err != nil {
		t.Fatal(err)
	}
	if after := time.Since(time.Unix(0, old.Sent)); after < ttl {
		t.Errorf("G3: granted to another %v after a renewal with ttl %v", after, ttl)
	}
	if g.Token <= old.Token {
		t.Errorf("G2: token %d after %d", g.Token, old.Token)
	}
	c.thaw(frozen)
	c.eventually("the frozen holder says that its grant is over", func() bool { return frozen.count("lost") > 0 })
	for _, r := range frozen.said() {
		if r.What == "renewed" && r.Sent > old.Sent+ttl.Nanoseconds() {
			t.Errorf("G4: the frozen holder renewed after its ttl: %+v", r)
		}
	}
	for range 10 {
		if g, err = cl.Renew(testContext(t), g, ttl); err != nil {
			t.Fatalf("the successor lost what it has: %v", err)
		}
	}
	before := h.count()
	c.eventually("renewals", func() bool { return h.count() > before+10 })
	h.end()
}

// A process that was killed finds its own leases free when it comes back, long
// before their ttl.
func TestProcesses_RestartReclaims(t *testing.T) {
	t.Parallel()
	const ttl = time.Hour
	job := program{Job: "own", TTL: ttl}
	c := start(t, map[string]program{"a": job}, "a", "b", "c")
	p := c.run["a"]
	c.eventually("the job is held", func() bool { return p.count("acquired") > 0 })
	first, _ := p.last("acquired")
	c.kill(p)
	if _, err := c.client("b", "c").Acquire(testContext(t), job.Job, "another", time.Minute); !errors.Is(err, lease.ErrHeld) {
		t.Errorf("acquire from the dead before its ttl: %v, want %v", err, lease.ErrHeld)
	}
	c.startAll("a")
	again := c.run["a"]
	c.eventually("the job is held again", func() bool { return again.count("acquired") > 0 })
	second, _ := again.last("acquired")
	if second.Token <= first.Token || second.Owner == first.Owner {
		t.Errorf("first %+v, then %+v: want a larger token and another owner", first, second)
	}
}
