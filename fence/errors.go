package fence

import (
	"errors"
	"fmt"

	"github.com/raftlease/raftlease/lease"
)

// ErrStale is the refusal of a token below the highest seen. Such a refusal is
// also lease.ErrLost, because somebody else was granted the lease.
var ErrStale = errors.New("fencing token is stale")

// StaleError says which token was refused and what it was compared with. It is
// ErrStale and lease.ErrLost.
type StaleError struct {
	Name    string // of the lease
	Token   uint64 // that was refused
	Highest uint64 // that was seen
}

// Error implements error.
func (e *StaleError) Error() string {
	return fmt.Sprintf("token %d of lease %q is stale: %d was seen, acquire the lease again", e.Token, e.Name, e.Highest)
}

// Is reports whether target is ErrStale or lease.ErrLost.
func (e *StaleError) Is(target error) bool { return target == ErrStale || target == lease.ErrLost }

// check refuses names and tokens that no lease has.
func check(name string, token uint64) error {
	var f lease.Faults
	f.Name(name)
	f.Token(token)
	return f.Err()
}
