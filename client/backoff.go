package client

import (
	"context"
	"math/rand/v2"
	"time"
)

// backoff is the pauses between attempts, which grow from firstPause to
// lastPause. The zero value is ready to use.
type backoff struct{ next time.Duration }

// pause waits, or until ctx ends. It varies, so that many clients which lost the
// same member do not come to the next one at once.
func (b *backoff) pause(ctx context.Context) {
	b.next = min(max(b.next, firstPause), lastPause)
	timer := time.NewTimer(b.next/2 + rand.N(b.next/2))
	defer timer.Stop()
	b.next *= 2
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// reset starts over, after something went well.
func (b *backoff) reset() { b.next = 0 }
