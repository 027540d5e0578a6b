package lease

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/raftlease/raftlease/internal/clock"
)

// MaxDrift is the assumed bound on how much the rates of two machines' clocks
// differ (G3): a holder counts a ttl this much shorter, a granter this much
// longer.
const MaxDrift = 0.001

// Shorter returns d as a holder counts it: d·(1-MaxDrift).
func Shorter(d time.Duration) time.Duration { return d - time.Duration(float64(d)*MaxDrift) }

// Longer returns d as a granter counts it: d·(1+MaxDrift), or the longest
// Duration where that would be more.
func Longer(d time.Duration) time.Duration {
	more := time.Duration(float64(d) * MaxDrift)
	if d > 0 && more > math.MaxInt64-d {
		return math.MaxInt64
	}
	return d + more
}

// Anchor is a reading of the holder's clock, taken before a request is sent. A
// grant's deadline counts from there, so that a slow answer only ever makes the
// holder stop earlier (G4). Stores make one for every attempt; users of a store
// do not need it. Safe for concurrent use.
type Anchor struct {
	clock clock.Holder
	at    clock.Reading
}

// NewAnchor reads the machine's holder clock now.
func NewAnchor() Anchor { return AnchorOn(clock.System()) }

// AnchorOn reads the given clock now. It lets this module's own stores inject
// one for tests; elsewhere use NewAnchor.
func AnchorOn(c clock.Holder) Anchor { return Anchor{clock: c, at: c.Now()} }

// Grant makes the grant that a request sent at a has won. parked is how long
// the store kept the request waiting before it granted the name, by the store's
// clock; it is not counted as lease time.
func (a Anchor) Grant(name, owner string, token uint64, ttl, parked time.Duration) Grant {
	return Grant{
		Name: name, Owner: owner, Token: token, TTL: ttl,
		hold: &hold{anchor: a, elapsed: new(atomic.Int64), until: Shorter(max(parked, 0)) + Shorter(ttl)},
	}
}

// Elapsed returns how long ago a was taken, by the holder's clock.
func (a Anchor) Elapsed() time.Duration { return a.clock.Now().Since(a.at) }

// Grant is what an owner got from a store. It is an immutable value: renewing
// returns a new one. Copies share nothing that a caller can change. Safe for
// concurrent use.
//
// A Grant built by hand from Name, Owner and Token can be renewed and released,
// but has no deadline in this process: its Check fails.
//
// The Grant that Run gives to a job is the one that follows its renewals: its
// Check tells whether the job may still act, and why not.
type Grant struct {
	Name  string
	Owner string
	Token uint64 // the fencing token, 1 to 2^53-1
	TTL   time.Duration

	hold   *hold
	tenure *tenure // only in the grant that Run gives to a job
	wanted string  // the owner who is to have it next, "" for nobody
}

// hold is the private deadline: until after the anchor.
type hold struct {
	anchor Anchor
	until  time.Duration
	// elapsed is the largest elapsed time ever read for this anchor, in
	// nanoseconds. It makes a lost grant lost for ever, also when a wall clock
	// that had jumped forward is set back.
	elapsed *atomic.Int64
}

func (h *hold) remaining() time.Duration {
	now := int64(h.anchor.Elapsed())
	for {
		seen := h.elapsed.Load()
		if now <= seen {
			return h.until - time.Duration(seen)
		}
		if h.elapsed.CompareAndSwap(seen, now) {
			return h.until - time.Duration(now)
		}
	}
}

// WithMargin returns g with a deadline that is earlier by margin, for a holder
// that needs time to stop. A negative margin is taken as zero. The copy of a
// grant that follows its renewals no longer does.
func (g Grant) WithMargin(margin time.Duration) Grant {
	if g.tenure != nil {
		g = g.tenure.snapshot()
	}
	if g.hold != nil && margin > 0 {
		h := *g.hold
		h.until -= margin
		g.hold = &h
	}
	return g
}

// WithWanted returns g saying that the lease is to be handed over to owner. It
// is for stores, in the grant that a renewal returns.
func (g Grant) WithWanted(owner string) Grant {
	g.wanted = owner
	return g
}

// Wanted returns the owner to whom an operator wants the lease handed over, as of
// the renewal that returned g, or "". The holder is asked to finish its work and
// to release; Run does so for its job.
func (g Grant) Wanted() string { return g.wanted }

// Remaining returns how long the holder may still act, by the local clock; zero
// when the grant is over or has no deadline in this process.
func (g Grant) Remaining() time.Duration {
	if g.tenure != nil {
		return g.tenure.remaining()
	}
	if g.hold == nil {
		return 0
	}
	return max(g.hold.remaining(), 0)
}

// Deadline returns the end of the grant as a time.Time with a monotonic
// reading, for timers and for showing to people. It is derived from Remaining at
// the moment of the call; after a suspend or a clock step only Remaining and
// Check are right. Zero when the grant has no deadline in this process.
func (g Grant) Deadline() time.Time {
	if g.tenure != nil {
		g = g.tenure.snapshot()
	}
	if g.hold == nil {
		return time.Time{}
	}
	return time.Now().Add(g.hold.remaining())
}

// Check returns nil while the holder may act, and a *LostError with
// ReasonExpired from the deadline on, without any message from the store (G4).
// It reads the clock at every call, which takes less than a microsecond, so it
// is right also after the process was frozen or the machine was suspended. It
// does not know of a release, a break or a loss that the store has already
// committed; a renewal tells that.
func (g Grant) Check() error {
	if g.tenure != nil {
		return g.tenure.check()
	}
	if g.hold != nil && g.hold.remaining() > 0 {
		return nil
	}
	return &LostError{Name: g.Name, Owner: g.Owner, Token: g.Token, Reason: ReasonExpired}
}
