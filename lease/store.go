package lease

import (
	"context"
	"time"
)

// Store grants leases. All methods are safe for concurrent use, and every one
// is safe to repeat: a repetition after a lost answer does what one call does
// (G6). Names and owners are compared byte by byte.
//
// Errors, by errors.Is: ErrInvalid for input that can never succeed, ErrHeld
// and ErrLost for refusals, ErrUnavailable when the store did not do it,
// ErrUnknownOutcome when it may have, ErrClosed after the store was closed.
// When ctx ends first, the error also wraps context.Cause(ctx).
type Store interface {
	// Acquire tries once. A free or expired name is granted to owner with a
	// token larger than every earlier one of that name. A name that owner
	// already holds is extended and keeps its token; its deadline never moves
	// back, also with a shorter ttl. Otherwise the error is a *HeldError with
	// holder, token and remaining time.
	Acquire(ctx context.Context, name, owner string, ttl time.Duration) (Grant, error)

	// Renew extends exactly the grant g (its Name, Owner and Token) by ttl from
	// now. When g is not the live grant, also when it expired and nobody took
	// the name since, the error is a *LostError (errors.Is ErrLost). A shorter
	// ttl than before never shortens a promise already made.
	Renew(ctx context.Context, g Grant, ttl time.Duration) (Grant, error)

	// Release frees the name if g is its live grant. Releasing a grant that is
	// not live has no effect and is no error.
	Release(ctx context.Context, g Grant) error

	// Guarantee says how exclusive the grants of this store are.
	Guarantee() Guarantee
}

// Waiter is a Store that can wait for a name.
type Waiter interface {
	// AcquireWait is Acquire that blocks while another owner holds the name,
	// until it is granted or ctx ends. Waiters of one name are served first
	// come, first served while the store's leader stays. The time spent waiting
	// is not counted as lease time. A waiter whose ctx ended is never left with
	// a grant.
	AcquireWait(ctx context.Context, name, owner string, ttl time.Duration) (Grant, error)
}

// Record is a lease as the store knows it.
type Record struct {
	Name  string
	Owner string // "" for a name that is free but has data
	Token uint64 // of the live grant; 0 when free
	TTL   time.Duration

	// Remaining is the time after which the store may grant the name to
	// another owner, as measured by the store. Zero when free or when this
	// reader does not know (a stale local read).
	Remaining time.Duration

	// Data is the last value written with Put. It outlives the grant.
	Data []byte
	// DataToken is the token that wrote Data; 0 when there is none.
	DataToken uint64

	// Index orders the record among the store's changes: the position of the
	// change that last granted, extended or freed it. Zero when unknown.
	Index uint64
}

// Held reports whether the record has a live grant.
func (r Record) Held() bool { return r.Owner != "" }

// Inspector is a Store that can be read.
type Inspector interface {
	// Get returns the record of name, as it was at some moment during the call
	// (linearizable on an Exclusive store). ErrNotFound when the name is free
	// and has no data.
	Get(ctx context.Context, name string) (Record, error)

	// List returns the records whose names begin with prefix, in byte order of
	// their names. "" lists all.
	List(ctx context.Context, prefix string) ([]Record, error)
}

// MaxDataLen is the largest value Put accepts, in bytes.
const MaxDataLen = 64 << 10

// DataStore is a Store that keeps a value with each name, such as the
// checkpoint of a job.
type DataStore interface {
	// Put replaces the data of g's name if g is its live grant, in one step
	// with that check: a stale token never writes (G7). The next holder reads
	// the last value with Get. Empty data removes the value. ErrLost when g is
	// not the live grant.
	Put(ctx context.Context, g Grant, data []byte) error
}

// Guarantee says how exclusive a store's grants are.
type Guarantee int

const (
	// Eventual: at most one owner per name once everybody has looked at the
	// clock and the database; two may overlap for a while in documented
	// situations (a frozen holder, a clock step, a failover that lost commits).
	Eventual Guarantee = iota + 1
	// Exclusive: no two owners hold a name at once under the stated
	// assumptions (G1, G3).
	Exclusive
)

// String returns "eventual" or "exclusive".
func (g Guarantee) String() string {
	switch g {
	case Eventual:
		return "eventual"
	case Exclusive:
		return "exclusive"
	}
	return "unknown"
}
