package clock

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

func TestReading_Since(t *testing.T) {
	start := Reading{Boot: time.Hour, Wall: 50 * 365 * 24 * time.Hour}
	for _, c := range []struct {
		name       string
		boot, wall time.Duration
		want       time.Duration
	}{
		{"both run", time.Second, time.Second, time.Second},
		{"neither runs", 0, 0, 0},
		{"the boot clock says more", 3 * time.Second, time.Second, 3 * time.Second},
		{"the wall clock says more", time.Second, 3 * time.Second, 3 * time.Second},
		{"G4 suspended, and the wall clock was set back", time.Hour, -time.Hour, time.Hour},
		{"G4 the wall clock was set forward", time.Second, time.Hour, time.Hour},
		{"G4 the wall clock was set back", time.Second, -time.Hour, time.Second},
		{"both ran backwards", -time.Second, -time.Hour, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			now := Reading{Boot: start.Boot + c.boot, Wall: start.Wall + c.wall}
			if got := now.Since(start); got != c.want {
				t.Errorf("%v since then, want %v", got, c.want)
			}
		})
	}
}

// A holder's clock may run fast, never slow.
func TestReading_SinceIsNeverLessThanEitherClock(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.Int64Range(0, math.MaxInt64/2)
		draw := func(what string) Reading {
			return Reading{Boot: time.Duration(d.Draw(t, what+" boot")), Wall: time.Duration(d.Draw(t, what+" wall"))}
		}
		a, b := draw("earlier"), draw("later")
		got := b.Since(a)
		if got < 0 || got < b.Boot-a.Boot || got < b.Wall-a.Wall {
			t.Errorf("%v from %+v to %+v", got, a, b)
		}
	})
}

func TestSystem_NeverRunsBack(t *testing.T) {
	before := System().Now()
	for range 1000 {
		now := System().Now()
		if now.Boot < before.Boot {
			t.Fatalf("the boot clock went from %v to %v", before.Boot, now.Boot)
		}
		before = now
	}
}

func TestSystem_CountsRealTime(t *testing.T) {
	const length = 5 * time.Millisecond
	first, start := System().Now(), time.Now()
	for time.Since(start) < length {
	}
	now := System().Now()
	if got := now.Boot - first.Boot; got < length {
		t.Errorf("the boot clock ran %v in more than %v", got, length)
	}
	if got := now.Since(first); got < length {
		t.Errorf("%v passed, want at least %v", got, length)
	}
	if off := time.Duration(time.Now().UnixNano()) - now.Wall; off.Abs() > time.Minute {
		t.Errorf("the wall clock is off by %v", off)
	}
}

// Holders on the system's clock work in virtual time: its wall part is virtual
// there, and the larger one counts.
func TestSystem_InABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := System().Now()
		time.Sleep(time.Hour)
		if got := System().Now().Since(start); got != time.Hour {
			t.Errorf("%v passed, want 1h", got)
		}
	})
}

func TestMonotonic(t *testing.T) {
	now := Monotonic()
	before := now()
	if before < 0 {
		t.Errorf("starts at %v", before)
	}
	for range 1000 {
		next := now()
		if next < before {
			t.Fatalf("went from %v to %v", before, next)
		}
		before = next
	}
}

func TestMonotonic_InABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := Monotonic()
		time.Sleep(time.Hour)
		other := Monotonic()
		time.Sleep(time.Minute)
		if got, want := now(), time.Hour+time.Minute; got != want {
			t.Errorf("%v, want %v", got, want)
		}
		if got := other(); got != time.Minute {
			t.Errorf("the other clock says %v, want 1m", got)
		}
	})
}
