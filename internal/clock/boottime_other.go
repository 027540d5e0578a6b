//go:build !linux

package clock

import "time"

var started = time.Now()

// boottime is Go's monotonic clock. On systems other than Linux it may stop
// during a suspend; the wall clock then counts it, unless that is set back at
// the same time.
func boottime() time.Duration { return time.Since(started) }
