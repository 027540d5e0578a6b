package lease

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// The kinds of failure. Test with errors.Is. Held, lost, unavailable and
// unknown are different answers (G6): the first two are refusals by the store,
// ErrUnavailable means nothing was done, ErrUnknownOutcome that it may have
// been. All calls may be repeated after any of them.
var (
	ErrHeld           = errors.New("lease is held by another owner")
	ErrLost           = errors.New("lease is lost")
	ErrNotFound       = errors.New("lease not found")
	ErrInvalid        = errors.New("invalid argument")
	ErrUnavailable    = errors.New("lease store unavailable")
	ErrUnknownOutcome = errors.New("outcome unknown")
	ErrClosed         = errors.New("lease store closed")
)

// HeldError is the refusal of an acquire. It is ErrHeld.
type HeldError struct {
	Name      string
	Owner     string        // who holds the lease
	Token     uint64        // the holder's token
	Remaining time.Duration // until the store may grant it to another; a hint, the holder may renew
}

// Error implements error.
func (e *HeldError) Error() string {
	return fmt.Sprintf("lease %q is held by %q with token %d for another %v", e.Name, e.Owner, e.Token,
		e.Remaining.Round(time.Millisecond))
}

// Is reports whether target is ErrHeld.
func (e *HeldError) Is(target error) bool { return target == ErrHeld }

// Reason says why a grant is over.
type Reason string

// Reasons of a LostError. A store that no longer knows why says ReasonGone.
const (
	ReasonExpired  Reason = "expired"  // its deadline passed
	ReasonTaken    Reason = "taken"    // another grant of the name is live
	ReasonReleased Reason = "released" // its owner released it
	ReasonBroken   Reason = "broken"   // an operator ended it
	ReasonGone     Reason = "gone"     // the store has no such grant
	ReasonClosed   Reason = "closed"   // the store was closed
)

// LostError says that a grant is over. It is ErrLost. Once a grant is lost it
// stays lost: nothing revives its token.
type LostError struct {
	Name   string
	Owner  string // of the lost grant
	Token  uint64 // of the lost grant
	Reason Reason

	// NewOwner and NewToken name the live grant where one is known.
	NewOwner string
	NewToken uint64
}

// Error implements error.
func (e *LostError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "lease %q of owner %q with token %d is lost: %s", e.Name, e.Owner, e.Token, e.Reason)
	if e.NewOwner != "" {
		fmt.Fprintf(&b, ", now held by %q with token %d", e.NewOwner, e.NewToken)
	}
	return b.String()
}

// Is reports whether target is ErrLost.
func (e *LostError) Is(target error) bool { return target == ErrLost }

// Fault is one thing wrong with one field.
type Fault struct {
	Field   string // as the caller knows it: "name", "owner", "ttl", "token", "data", …
	Value   string // what was given, quoted and shortened
	Allowed string // what is allowed
}

// InvalidError lists all faults of a call's arguments at once. It is
// ErrInvalid.
type InvalidError struct{ Faults []Fault }

// Error implements error.
func (e *InvalidError) Error() string {
	parts := make([]string, len(e.Faults))
	for i, f := range e.Faults {
		parts[i] = fmt.Sprintf("%s is %s, want %s", f.Field, f.Value, f.Allowed)
	}
	return "invalid argument: " + strings.Join(parts, "; ")
}

// Is reports whether target is ErrInvalid.
func (e *InvalidError) Is(target error) bool { return target == ErrInvalid }
