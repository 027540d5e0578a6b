package lease

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// keeper renews the grant of a tenure and ends the tenure at its deadline. It is
// one goroutine, and one more while a renewal is under way, so that a store that
// hangs does not keep the deadline from being seen.
type keeper struct {
	store  Store
	job    Job
	tenure *tenure
	drain  <-chan struct{} // nil after it was seen
	events *teller

	ctx    context.Context // of renewals; the caller's cancellation does not reach it
	cancel context.CancelFunc
	work   sync.WaitGroup

	tries   int           // that have not worked, since the last that did
	renewAt time.Duration // what remains when the next renewal is due
	answers chan answer
	busy    bool // a renewal is under way
}

type answer struct {
	grant Grant
	err   error
}

// keep starts a keeper. ctx gives values, not its end.
func keep(ctx context.Context, s Store, j Job, t *tenure, drain <-chan struct{}, events *teller) *keeper {
	k := &keeper{store: s, job: j, tenure: t, drain: drain, events: events, answers: make(chan answer, 1)}
	k.ctx, k.cancel = context.WithCancel(context.WithoutCancel(ctx))
	k.renewAt = k.nextRenewal()
	k.work.Go(k.run)
	return k
}

// wait returns when the tenure is over and no call of the store is under way.
func (k *keeper) wait() { k.work.Wait() }

func (k *keeper) run() {
	// What remains is counted on the holder's clock, which counts a suspend. A
	// timer does not, so the clock is also read every look.
	look := max(min(k.job.TTL/20, 250*time.Millisecond), time.Millisecond)
	timer := time.NewTimer(look)
	defer timer.Stop()
	for {
		left := k.tenure.remaining()
		if left <= 0 {
			k.quit()
			return
		}
		if !k.busy && left <= k.renewAt {
			k.try(left)
		}
		pause := min(look, left)
		if !k.busy {
			pause = min(pause, left-k.renewAt)
		}
		timer.Reset(pause)
		select {
		case <-timer.C:
		case a := <-k.answers:
			k.busy = false
			k.took(a)
		case <-k.drain:
			k.drain = nil
			k.tenure.cancel(closing(k.job.Name))
		case <-k.tenure.ended:
			k.quit()
			return
		}
	}
}

// quit tells of a loss, and ends the renewal that is under way.
func (k *keeper) quit() {
	if lost := k.tenure.lost(); lost != nil {
		k.events.event(HoldEvent{Kind: HoldLost, Grant: k.tenure.latest(), Err: lost})
	}
	k.cancel()
}

// try starts one renewal.
func (k *keeper) try(left time.Duration) {
	k.busy = true
	k.work.Go(func() {
		ctx, cancel := context.WithTimeout(k.ctx, min(k.job.tryTimeout(), left))
		defer cancel()
		g, err := k.store.Renew(ctx, k.tenure.latest(), k.job.TTL)
		k.answers <- answer{g.WithMargin(k.job.Margin), err}
	})
}

// took carries out what an answer means: a refusal ends the tenure, everything
// else that is not a renewal leaves the deadline where it was.
func (k *keeper) took(a answer) {
	if a.err == nil {
		a.err = k.tenure.renewed(a.grant)
	}
	switch {
	case a.err == nil:
		k.tries = 0
		k.renewAt = k.nextRenewal()
		k.events.event(HoldEvent{Kind: HoldRenewed, Grant: a.grant, Remaining: a.grant.Remaining()})
	case k.tenure.refused(a.err):
	default:
		left := k.tenure.remaining()
		if left <= 0 {
			return
		}
		k.renewAt = left - backoff(k.tries, k.job.TTL)
		k.tries++
		k.events.event(HoldEvent{Kind: HoldJeopardy, Grant: k.tenure.latest(), Remaining: left, Err: a.err})
	}
}

// nextRenewal returns what remains of a grant that has just been given when a
// third of it is used up, or a little less so that holders do not go in step.
func (k *keeper) nextRenewal() time.Duration {
	third := k.job.usable() / 3
	return k.job.usable() - third + rand.N(third/5+1)
}

// backoff returns how long to wait before a call is repeated that has not worked
// tries times before.
func backoff(tries int, ttl time.Duration) time.Duration {
	first := min(ttl/50, 100*time.Millisecond)
	longest := min(ttl/10, 10*time.Second)
	d := min(first<<min(tries, 20), longest)
	return d/2 + rand.N(d/2+1)
}
