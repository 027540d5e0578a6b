package granter

import (
	"container/heap"
	"time"

	"github.com/raftlease/raftlease/internal/state"
	"github.com/raftlease/raftlease/lease"
)

// slot is what the granter knows about one name: its live grant, if any, and
// who waits. It exists while there is either. Guarded by Granter.mu.
type slot struct {
	name string

	live     bool
	owner    string
	token    uint64
	session  state.Session
	revision uint64
	// ttl is the length that a take-over is sure to restart: the recorded ttl,
	// or less when a Shorten is on its way. A longer renewal must go through
	// the log first.
	ttl time.Duration
	// recorded is the recorded ttl as far as this leader has applied.
	recorded time.Duration
	// shorten is the ttl of a Shorten on its way, 0 when there is none.
	shorten time.Duration
	// deadline is when the grant may be ended, by the granter's clock. It never
	// moves back while the grant lives.
	deadline time.Duration
	// claimed says that somebody was told of the grant or asked for more of it:
	// it must not be taken back as an abandoned one.
	claimed bool
	// wonBy is the id of the waiting acquire that won the grant, 0 when that is
	// not known.
	wonBy uint64
	// ending is set from the moment an Expire of this grant at this revision is
	// proposed until it is decided, and closed then: the grant has ended, or a
	// refresh that was ahead in the log has changed the revision and made the
	// expiry void. Renewals wait for it: one that was answered in between could
	// be followed by the expiry in the log.
	ending chan struct{}

	waiters []*waiter // first come, first served
	turn    *waiter   // whose Acquire is on its way; one of waiters, or nil
	// heir is the owner who is served before the others because of a handover,
	// "" for nobody.
	heir string
	// stirred is closed when the live grant or the waiters have changed; nil
	// while nobody looks.
	stirred chan struct{}

	due     time.Duration // when the agenda looks at this slot next
	heapPos int           // -1 when not on the agenda
}

// extend moves the deadline to at least now + ttl as a granter counts it. A
// shorter ttl never takes back a promise already made.
func (s *slot) extend(now, ttl time.Duration) { s.deadline = max(s.deadline, now+lease.Longer(ttl)) }

// is reports whether the live grant of s has this owner and token.
func (s *slot) is(owner string, token uint64) bool {
	return s != nil && s.live && s.owner == owner && s.token == token
}

// grant records what the state machine says about the live grant, which was
// granted or refreshed for ttl.
func (s *slot) grant(l state.Lease, now, ttl time.Duration) {
	if !s.live || s.token != l.Token {
		s.live, s.owner, s.token = true, l.Owner, l.Token
		s.deadline, s.shorten, s.claimed, s.wonBy = 0, 0, false, 0
		s.heir = ""
		s.stir()
	}
	if s.revision != l.Revision {
		s.settle()
	}
	s.session, s.revision = l.Session, l.Revision
	s.record(l.TTL)
	s.extend(now, ttl)
}

// record takes over the recorded ttl, unless a Shorten is about to lower it.
func (s *slot) record(ttl time.Duration) {
	s.ttl, s.recorded = ttl, ttl
	if s.shorten > 0 {
		s.ttl = min(ttl, s.shorten)
	}
}

// free ends the live grant and lets those go on who wait for its outcome.
func (s *slot) free() {
	s.settle()
	s.live, s.owner, s.token, s.revision, s.session = false, "", 0, 0, state.Session{}
	s.ttl, s.recorded, s.shorten, s.deadline = 0, 0, 0, 0
	s.stir()
}

// stir wakes those who look at s.
func (s *slot) stir() {
	if s.stirred != nil {
		close(s.stirred)
		s.stirred = nil
	}
}

// settle says that no Expire is pending any more.
func (s *slot) settle() {
	if s.ending != nil {
		close(s.ending)
		s.ending = nil
	}
}

// agenda is a heap of live slots by the time at which to look at them. Renewals
// do not touch it: a slot whose deadline has moved is put back when it comes up.
type agenda []*slot

func (a agenda) Len() int           { return len(a) }
func (a agenda) Less(i, j int) bool { return a[i].due < a[j].due }
func (a agenda) Swap(i, j int) {
	a[i], a[j] = a[j], a[i]
	a[i].heapPos, a[j].heapPos = i, j
}

// Push implements heap.Interface.
func (a *agenda) Push(x any) {
	s := x.(*slot)
	s.heapPos = len(*a)
	*a = append(*a, s)
}

// Pop implements heap.Interface.
func (a *agenda) Pop() any {
	old := *a
	s := old[len(old)-1]
	old[len(old)-1] = nil
	*a = old[:len(old)-1]
	s.heapPos = -1
	return s
}

// schedule puts s on the agenda, or moves it, to be looked at when due.
func (a *agenda) schedule(s *slot, due time.Duration) {
	s.due = due
	if s.heapPos < 0 {
		heap.Push(a, s)
	} else {
		heap.Fix(a, s.heapPos)
	}
}

func (a *agenda) drop(s *slot) {
	if s.heapPos >= 0 {
		heap.Remove(a, s.heapPos)
	}
}
