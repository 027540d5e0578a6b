package demo

import (
	"cmp"
	"slices"
	"time"

	"github.com/raftlease/raftlease/lease"
)

// tenure is one grant by its holder's own account, in readings of now.
type tenure struct {
	node  string
	token uint64
	from  time.Duration // the holder began to act
	until time.Duration // it may act, after its last renewal
	ended time.Duration // it stopped; 0 while it has not
}

// end is when the holder's belief ended.
func (t tenure) end() time.Duration {
	if t.ended != 0 {
		return min(t.ended, t.until)
	}
	return t.until
}

// renewed is when the holder sent its last renewal, or the acquire.
func (t tenure) renewed(ttl time.Duration) time.Duration { return t.until - lease.Shorter(ttl) }

// written is one write that the resource has seen.
type written struct {
	node  string
	token uint64
	at    time.Duration // by the writer's account, before it looked at its grant
	good  bool          // the resource accepted it
	late  bool          // the writer did not look at its grant
}

// takeover is how an act passed the lease on.
type takeover struct {
	act    string
	before uint64        // the token of the holder that was disturbed
	after  uint64        // the token of the next one
	took   time.Duration // since the last renewal
}

// ledger is all that was said about who holds the lease and who wrote. The
// checks are made of it alone.
type ledger struct {
	ttl       time.Duration
	tenures   []tenure // in the order of the reports
	writes    []written
	takeovers []takeover

	noticed  time.Duration // how long the frozen holder, once thawed, took to notice
	thawed   bool          // noticed is set
	restored uint64        // the next token that the crashed node knew when it was back
	known    uint64        // the largest token before
}

func (l *ledger) held(node string, token uint64, from, until time.Duration) {
	l.tenures = append(l.tenures, tenure{node: node, token: token, from: from, until: until})
}

func (l *ledger) renewed(node string, token uint64, until time.Duration) {
	if t := l.find(node, token); t != nil {
		t.until = max(t.until, until)
	}
}

func (l *ledger) ended(node string, token uint64, at time.Duration) {
	if t := l.find(node, token); t != nil && t.ended == 0 {
		t.ended = at
	}
}

func (l *ledger) find(node string, token uint64) *tenure {
	for i := range l.tenures {
		if t := &l.tenures[i]; t.node == node && t.token == token {
			return t
		}
	}
	return nil
}

// last is the tenure that began last.
func (l *ledger) last() (tenure, bool) {
	if len(l.tenures) == 0 {
		return tenure{}, false
	}
	return slices.MaxFunc(l.tenures, func(a, b tenure) int { return cmp.Compare(a.from, b.from) }), true
}

// inOrder returns the tenures by their beginnings.
func (l *ledger) inOrder() []tenure {
	ts := slices.Clone(l.tenures)
	slices.SortFunc(ts, func(a, b tenure) int { return cmp.Compare(a.from, b.from) })
	return ts
}
