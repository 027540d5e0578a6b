package lease

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Pauses are long enough not to be a load, short enough not to miss a deadline,
// and differ, so that holders and waiters do not go in step.
func TestPauses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ttl := time.Duration(rapid.Int64Range(int64(minJobTTL), int64(DefaultMax)).Draw(t, "ttl"))
		tries := rapid.IntRange(0, 1<<40).Draw(t, "tries")
		if d := backoff(tries, ttl); d <= 0 || d > ttl/10 || d > 10*time.Second {
			t.Errorf("backoff of %v after %d tries, the ttl being %v", d, tries, ttl)
		}
		remaining := time.Duration(rapid.Int64Range(-int64(time.Second), int64(DefaultMax)).Draw(t, "remaining"))
		longest := min(ttl/3, 5*time.Second)
		if d := poll(remaining, ttl); d < min(remaining, longest) || d < min(ttl/50, longest) || d > longest+longest/4+1 {
			t.Errorf("poll after %v, with %v remaining and a ttl of %v", d, remaining, ttl)
		}
	})
	polls, backoffs := map[time.Duration]bool{}, map[time.Duration]bool{}
	for range 100 {
		polls[poll(time.Second, DefaultTTL)] = true
		backoffs[backoff(3, DefaultTTL)] = true
	}
	if len(polls) < 50 || len(backoffs) < 50 {
		t.Errorf("%d and %d different pauses of 100", len(polls), len(backoffs))
	}
	if poll(time.Second, DefaultTTL) < time.Second {
		t.Error("asks before the holder can have expired")
	}
}
