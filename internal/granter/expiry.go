package granter

import (
	"time"

	"github.com/raftlease/raftlease/internal/state"
)

// retryExpire is how soon an Expire that never entered the log is tried again.
const retryExpire = 50 * time.Millisecond

// maxEnds bounds the grants that one proposal ends. Each may bring the acquire
// of one who waits.
const maxEnds = maxEntryCommands / 2

// expire ends grants whose deadline has passed. The timer alone frees nothing
// (rule 12): it proposes, and the committed command decides.
func (g *Granter) expire() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		if wait, some := g.proposeDue(); some {
			timer.Reset(wait)
		} else {
			timer.Stop()
		}
		select {
		case <-timer.C:
		case <-g.rearm:
		case <-g.ctx.Done():
			return
		}
	}
}

// proposeDue proposes one Expire for every grant that is due and returns how
// long until the next one is.
func (g *Granter) proposeDue() (wait time.Duration, some bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.cfg.Clock()
	var due []*slot
	for len(g.agenda) > 0 && g.agenda[0].due <= now {
		s := g.agenda[0]
		if s.deadline > now && s.ending == nil { // renewed since it was put here
			g.agenda.schedule(s, s.deadline)
			continue
		}
		g.agenda.drop(s)
		due = append(due, s)
	}
	for len(due) > 0 {
		n := min(len(due), maxEnds)
		g.end(due[:n])
		due = due[n:]
	}
	if len(g.agenda) == 0 {
		return 0, false
	}
	// The granter's clock may run slower than the timer's: it is looked at
	// again when the timer fires.
	return max(g.agenda[0].due-now, time.Millisecond), true
}

// end proposes the end of the live grants of these slots, and in the same entry
// the acquires of those who wait for them. From here on renewals of these
// grants wait for the outcome (rule 4). g.mu is held.
func (g *Granter) end(slots []*slot) {
	cmds := []state.Command{{Kind: state.KindExpire}}
	var offers []*waiter
	for _, s := range slots {
		if s.ending == nil {
			s.ending = make(chan struct{})
		}
		cmds[0].Ends = append(cmds[0].Ends, state.End{Name: s.name, Token: s.token, Revision: s.revision})
		if w := g.firstWaiter(s); w != nil {
			cmds = append(cmds, w.command())
			offers = append(offers, w)
		}
	}
	g.proposer.propose(&proposal{cmds: cmds, done: func(rs []state.Result, err error) {
		if err != nil {
			g.expireFailed(cmds[0].Ends, err)
		}
		g.offered(offers, rs[min(1, len(rs)):], err)
	}})
}

// expireFailed tries again: an expiry that was announced is not undone. What
// never entered the log has not happened; an expiry with an unknown outcome is
// the same command, so it is harmless twice. Either way nothing waits for ever
// while the term lasts.
func (g *Granter) expireFailed(ends []state.End, err error) {
	g.log.Debug("expire again", "term", g.cfg.Term, "leases", len(ends), "err", err)
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, e := range ends {
		if s := g.slots[e.Name]; s != nil && s.live && s.token == e.Token && s.revision == e.Revision && s.ending != nil {
			g.schedule(s, g.cfg.Clock()+retryExpire)
		}
	}
}
