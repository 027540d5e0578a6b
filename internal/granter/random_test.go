package granter

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/raftlease/raftlease/internal/clock"
	"github.com/raftlease/raftlease/internal/state"
	"github.com/raftlease/raftlease/lease"
	pb "github.com/raftlease/raftlease/transport/rpc/raftleasev1"
)

// believed is one answer that made an owner believe: from when it was sent, for
// how long.
type believed struct {
	name, owner string
	token       uint64
	sent, until time.Time
}

// oracle collects what owners were told, and checks it against the log.
type oracle struct {
	mu       sync.Mutex
	beliefs  []believed
	released map[uint64]time.Time // when the release of a token was first sent
	lost     []believed           // refusals of renewals: sent, and answered at until
}

func (o *oracle) believe(name, owner string, token uint64, sent time.Time, parked, ttl time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.beliefs = append(o.beliefs, believed{name, owner, token, sent, sent.Add(lease.Shorter(parked) + lease.Shorter(ttl))})
}

func (o *oracle) release(token uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, twice := o.released[token]; !twice {
		o.released[token] = time.Now()
	}
}

func (o *oracle) lose(name, owner string, token uint64, sent time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lost = append(o.lost, believed{name, owner, token, sent, time.Now()})
}

// check proves G1, G2 and G3 over a whole run: the tokens of the log rise, no
// name is granted while an owner believes in an earlier token, and no grant is
// ended or refused before that.
func (o *oracle) check(t testing.TB, log []appended) {
	t.Helper()
	end := map[uint64]time.Time{} // of each token
	last := uint64(0)
	for _, a := range log {
		for _, r := range a.results {
			if r.Code == state.OK && r.New {
				if r.Lease.Token <= last {
					t.Errorf("G2: token %d after %d", r.Lease.Token, last)
				}
				last = r.Lease.Token
			}
			for _, l := range r.Ended {
				end[l.Token] = a.at
			}
		}
	}
	for _, b := range o.beliefs {
		at, ended := end[b.token]
		if sent, own := o.released[b.token]; own && !at.Before(sent) {
			continue
		}
		if ended && at.Before(b.until) {
			t.Errorf("G3: %q of %q with token %d ended %v before its owner stopped believing (sent %v)",
				b.name, b.owner, b.token, b.until.Sub(at), b.sent.Format("05.000"))
		}
		for _, l := range o.lost {
			if l.token == b.token && b.sent.Before(l.sent) && l.until.Before(b.until) {
				t.Errorf("G5: %q of %q with token %d was refused %v too early", b.name, b.owner, b.token, b.until.Sub(l.until))
			}
		}
	}
}

// chaos is one random run.
type chaos struct {
	*world
	oracle
	rmu  sync.Mutex
	rand *rand.Rand
	old  *Granter // the leader before; it may not know yet
}

func (c *chaos) n(n int) int {
	c.rmu.Lock()
	defer c.rmu.Unlock()
	return c.rand.IntN(n)
}

func (c *chaos) ms(n int) time.Duration { return time.Duration(c.n(n)) * time.Millisecond }

// ask sends one operation to the leader, now and then to the one before.
func (c *chaos) ask(ctx context.Context, op any) *pb.OperationResult {
	g := c.leader()
	c.rmu.Lock()
	if c.old != nil && c.rand.IntN(4) == 0 {
		g = c.old
	}
	c.rmu.Unlock()
	return g.Do(ctx, operation(op))
}

// owner acts at random for one owner until ctx ends.
func (c *chaos) owner(ctx context.Context, owner string) {
	token := map[string]uint64{}
	for ctx.Err() == nil {
		time.Sleep(c.ms(1500))
		name := fmt.Sprint("l", c.n(2))
		length := []time.Duration{time.Second, 2 * time.Second, 5 * time.Second}[c.n(3)]
		own, cancel := context.WithTimeout(ctx, []time.Duration{3 * time.Second, 8 * time.Second, 20 * time.Millisecond}[c.n(3)])
		c.step(own, name, owner, length, token)
		cancel()
	}
}

func (c *chaos) step(ctx context.Context, name, owner string, length time.Duration, token map[string]uint64) {
	held, sent := token[name], time.Now()
	switch k := c.n(10); {
	case held == 0 || k == 0:
		op := acquireOf(name, owner, length)
		op.Wait = c.n(2) == 0
		if a := c.ask(ctx, op).GetAcquire(); a != nil {
			token[name] = a.Token
			c.believe(name, owner, a.Token, sent, a.Parked.AsDuration(), a.Ttl.AsDuration())
		}
	case k == 1:
		c.oracle.release(held)
		c.ask(ctx, releaseOf(name, owner, held))
		delete(token, name)
	default:
		r := c.ask(ctx, renewOf(name, owner, held, length))
		switch {
		case r.Error.GetCode() == pb.ErrorCode_ERROR_CODE_LOST:
			c.lose(name, owner, held, sent)
			delete(token, name)
		case r.Outcome == pb.Outcome_OUTCOME_DONE && r.Error == nil:
			c.believe(name, owner, held, sent, 0, length)
		}
	}
}

// fate chooses what befalls an entry: mostly nothing.
func (c *chaos) fate(state.Entry) fate {
	switch c.n(40) {
	case 0:
		return fate{refuse: raft.ErrEnqueueTimeout}
	case 1:
		return fate{fail: raft.ErrAbortedByRestore} // an unknown outcome that does not end the term
	case 2:
		return fate{late: c.ms(3000)}
	}
	return fate{late: c.ms(5)}
}

// elections gives the lead to one of two nodes now and then. The one before it
// goes on until it notices.
func (c *chaos) elections(ctx context.Context) {
	term := uint64(1)
	for ctx.Err() == nil {
		time.Sleep(2*time.Second + c.ms(8000))
		term += uint64(1 + c.n(2))
		c.quorum.set(func(q *fakeQuorum) { q.promised = term }) // voted, and not yet applied
		time.Sleep(c.ms(500))
		// Rates of the granters' clocks differ by no more than the drift allowed for.
		c.clock = rated(clock.Monotonic(), 0.99+float64(c.n(11))/1000)
		old := c.leader()
		c.lead(fmt.Sprint("n", 1+c.n(2)), term)
		c.rmu.Lock()
		c.old = old
		c.rmu.Unlock()
	}
}

// G1, G2, G3, G5: owners, faults and elections at random.
func TestGranter_RandomRuns(t *testing.T) {
	runs := 60
	if testing.Short() {
		runs = 10
	}
	for seed := range runs {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { randomRun(t, uint64(seed)) })
			if t.Failed() {
				t.FailNow()
			}
		})
	}
}

func randomRun(t *testing.T, seed uint64) {
	c := &chaos{world: newWorld(t), oracle: oracle{released: map[uint64]time.Time{}}, rand: rand.New(rand.NewPCG(seed, 1))}
	c.log.set(c.fate)
	c.lead("n1", 1)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	var wg sync.WaitGroup
	for i := range 5 {
		wg.Go(func() { c.owner(ctx, fmt.Sprint("o", i)) })
	}
	wg.Go(func() { c.elections(ctx) })
	wg.Wait()
	c.log.set(nil)
	time.Sleep(10 * time.Second) // nothing waits for ever: what nobody renews ends
	for _, l := range c.log.machine.List("") {
		t.Errorf("%q is still held by %q with token %d, want everything ended", l.Name, l.Owner, l.Token)
	}
	c.check(t, c.log.history())
	if grants := c.log.machine.NextToken(); grants < 20 || len(c.beliefs) < 50 {
		t.Errorf("%d grants and %d answers: the run is too idle to prove anything", grants, len(c.beliefs))
	}
}
