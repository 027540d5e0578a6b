package clock

import "time"

// Granter is a clock for whoever gives leases: it may run slow, never fast. It
// returns the time since some fixed moment of this process. Safe for concurrent
// use.
type Granter func() time.Duration

// Monotonic returns a Granter on Go's monotonic clock, virtual inside a
// testing/synctest bubble.
func Monotonic() Granter {
	start := time.Now()
	return func() time.Duration { return time.Since(start) }
}
