// Package clock holds the two clocks of a lease.
//
// Whoever gives a lease must use a clock that can only be slow, whoever holds
// one must use a clock that can only be fast. The granter's clock is Go's
// monotonic one (CLOCK_MONOTONIC on Linux), which stops while the machine is
// suspended: leases only get longer. The holder's clock is the larger elapsed
// time of CLOCK_BOOTTIME, which counts a suspend, and the wall clock: a jump
// forward only costs a lease, a jump back is caught by CLOCK_BOOTTIME.
//
// Not promised: a pause of a whole virtual machine can stop every clock in it.
package clock

import "time"

// Reading is one look at a holder's clocks. Readings of different clocks, or of
// different boots, must not be compared. No reading leaves a process: only
// durations travel.
type Reading struct {
	Boot time.Duration // since some moment before the process started, counting suspend where the system can
	Wall time.Duration // since the Unix epoch
}

// Since returns the time from earlier to r, by whichever of the two clocks says
// more. Never negative.
func (r Reading) Since(earlier Reading) time.Duration {
	return max(r.Boot-earlier.Boot, r.Wall-earlier.Wall, 0)
}

// Holder is a clock for holders: it may run fast, never slow. Implementations
// are safe for concurrent use.
type Holder interface{ Now() Reading }

// System returns the machine's holder clock. In a testing/synctest bubble its
// wall part is the bubble's virtual time.
func System() Holder { return system{} }

type system struct{}

func (system) Now() Reading {
	return Reading{Boot: boottime(), Wall: time.Duration(time.Now().UnixNano())}
}
