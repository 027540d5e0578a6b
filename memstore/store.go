package memstore

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/raftlease/raftlease/internal/clock"
	"github.com/raftlease/raftlease/lease"
)

// Bounds for Config.Limits.
const (
	minLimit = time.Millisecond
	maxLimit = 365 * 24 * time.Hour
)

// Config says how a Store works. The zero value is useful.
type Config struct {
	// Limits bound the ttl. The zero value means 1 s to 24 h.
	Limits lease.Limits

	// Holder is the clock that grants count their deadline on. Defaults to the
	// machine's holder clock.
	Holder clock.Holder
}

// Validate reports everything that is wrong with c at once, as a
// *lease.InvalidError with the names of the fields.
func (c Config) Validate() error {
	var f lease.Faults
	l := c.Limits.WithDefaults()
	if l.MinTTL < minLimit || l.MinTTL > l.MaxTTL || l.MaxTTL > maxLimit {
		f.Add("Limits", fmt.Sprintf("%v to %v", l.MinTTL, l.MaxTTL),
			fmt.Sprintf("within %v to %v, the smaller first", minLimit, maxLimit))
	}
	return f.Err()
}

// Store grants leases to the callers of one process. Safe for concurrent use.
// It runs no goroutine; one timer waits for the earliest deadline.
type Store struct {
	limits lease.Limits
	holder clock.Holder
	now    clock.Granter
	done   chan struct{} // closed by Close
	ticks  sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	token   uint64 // the last one given; at one a microsecond, 2^53 of them last 285 years
	records map[string]*record
	due     deadlines // the held records
	alarm   alarm
	past    history
}

// record is one name that is held or has data.
type record struct {
	name      string
	owner     string // "" when free
	token     uint64
	ttl       time.Duration
	deadline  time.Duration // on Store.now
	data      []byte        // never changed in place
	dataToken uint64
	index     uint64    // of the change that last granted, extended or freed it
	queue     []*waiter // in the order of their calls; empty when free
	place     int       // in Store.due
}

// New returns a Store with the default limits.
func New() *Store {
	return open(Config{}, clock.Monotonic())
}

// Open returns a Store that works as c says, or a *lease.InvalidError.
func Open(c Config) (*Store, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return open(c, clock.Monotonic()), nil
}

func open(c Config, now clock.Granter) *Store {
	s := &Store{
		limits:  c.Limits.WithDefaults(),
		holder:  c.Holder,
		now:     now,
		done:    make(chan struct{}),
		records: map[string]*record{},
		past:    newHistory(),
	}
	if s.holder == nil {
		s.holder = clock.System()
	}
	return s
}

// Close ends the store: running and later calls return lease.ErrClosed. Grants
// keep their deadlines, since nobody can be granted anything any more. It is
// idempotent and always returns nil.
func (s *Store) Close() error {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.done)
		s.disarm()
	}
	s.mu.Unlock()
	s.ticks.Wait()
	return nil
}

// Guarantee returns lease.Exclusive.
func (s *Store) Guarantee() lease.Guarantee { return lease.Exclusive }

// begin locks s for one call and returns the time at which the call happens.
// What is due by then has expired. On an error s is not locked.
func (s *Store) begin(ctx context.Context) (time.Duration, error) {
	s.mu.Lock()
	switch {
	case s.closed:
		s.mu.Unlock()
		return 0, lease.ErrClosed
	case ctx.Err() != nil:
		s.mu.Unlock()
		return 0, ended(ctx)
	}
	now := s.now()
	s.expire(now)
	return now, nil
}

// finish ends what begin began.
func (s *Store) finish(now time.Duration) {
	s.arm(now)
	s.mu.Unlock()
}

// ended is the error of a call that did nothing because its ctx ended first.
func ended(ctx context.Context) error {
	return fmt.Errorf("%w: %w", lease.ErrUnavailable, context.Cause(ctx))
}

// record returns r as others see it at now.
func (r *record) record(now time.Duration) lease.Record {
	out := lease.Record{
		Name: r.name, Owner: r.owner, Token: r.token, TTL: r.ttl,
		Data: r.data, DataToken: r.dataToken, Index: r.index,
	}
	if r.owner != "" {
		out.Remaining = r.deadline - now
	}
	return out
}
