package lease

import (
	"errors"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/raftlease/raftlease/internal/clock"
	"pgregory.net/rapid"
)

const ttl = 10 * time.Second

// setClock is a holder's clock that a test sets.
type setClock struct {
	mu sync.Mutex
	at clock.Reading
}

func newSetClock() *setClock {
	return &setClock{at: clock.Reading{Boot: 20 * time.Minute, Wall: 56 * 365 * 24 * time.Hour}}
}

func (c *setClock) Now() clock.Reading {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

// moves advances the two clocks, each by its own.
func (c *setClock) moves(boot, wall time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at.Boot += boot
	c.at.Wall += wall
}

// passes advances both.
func (c *setClock) passes(d time.Duration) { c.moves(d, d) }

func grantOn(c clock.Holder) Grant { return AnchorOn(c).Grant("x", "a", 7, ttl, 0) }

// isGood checks Check, Remaining and Deadline against each other.
func isGood(t testing.TB, g Grant, want bool) {
	t.Helper()
	if err := g.Check(); (err == nil) != want {
		t.Errorf("check: %v, want good: %v (G4)", err, want)
	} else if err != nil {
		var l *LostError
		if !errors.As(err, &l) || *l != (LostError{Name: g.Name, Owner: g.Owner, Token: g.Token, Reason: ReasonExpired}) {
			t.Errorf("check: %#v, want a *LostError of the grant that says expired", err)
		}
	}
	if r := g.Remaining(); (r > 0) != want || r < 0 {
		t.Errorf("%v remain, want good: %v", r, want)
	}
}

// G4: the grant ends at ttl·(1-drift) after its anchor, to the nanosecond.
func TestGrant_EndsAtTheShorterTTL(t *testing.T) {
	c := newSetClock()
	g := grantOn(c)
	if r := g.Remaining(); r != 9990*time.Millisecond {
		t.Errorf("%v remain of 10s, want 9.99s", r)
	}
	c.passes(9990*time.Millisecond - 1)
	isGood(t, g, true)
	if r := g.Remaining(); r != 1 {
		t.Errorf("%v remain, want 1ns", r)
	}
	c.passes(1)
	isGood(t, g, false)
	c.passes(time.Hour)
	isGood(t, g, false)
}

// G4: each clock may do what it likes, the one that says more decides.
func TestGrant_ClocksThatJump(t *testing.T) {
	for _, c := range []struct {
		name       string
		boot, wall time.Duration
		good       bool
	}{
		{"the machine was suspended for an hour", time.Hour, time.Hour, false},
		{"suspended, and the wall clock was set back an hour", time.Hour, 0, false},
		{"the wall clock was set forward an hour", 0, time.Hour, false},
		{"the wall clock was set back an hour", 0, -time.Hour, true},
		{"set back an hour, and nearly the ttl passed", 9 * time.Second, 9*time.Second - time.Hour, true},
		{"set back an hour, and the ttl passed", ttl, ttl - time.Hour, false},
		{"the boot clock stands still", 0, ttl, false},
		{"a little of each", 5 * time.Second, 6 * time.Second, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			clk := newSetClock()
			g := grantOn(clk)
			isGood(t, g, true)
			clk.moves(c.boot, c.wall)
			isGood(t, g, c.good)
		})
	}
}

// Once lost, lost for ever, in every copy, also when the clock is set right.
func TestGrant_OnceLostForEverLost(t *testing.T) {
	c := newSetClock()
	g := grantOn(c)
	other, short := g, g.WithMargin(time.Second)
	c.moves(time.Second, time.Hour)
	isGood(t, g, false)
	c.moves(0, -2*time.Hour)
	for _, copied := range []Grant{g, other, short, g.WithMargin(0)} {
		isGood(t, copied, false)
	}
}

// A look that no copy of the grant took loses nothing.
func TestGrant_WallClockSetForwardAndBackUnseen(t *testing.T) {
	c := newSetClock()
	g := grantOn(c)
	c.moves(0, time.Hour)
	c.moves(time.Second, time.Second-time.Hour)
	isGood(t, g, true)
}

// Every attempt has its own anchor: a renewal is not lost with the grant that
// it renews, and a grant is not revived by its renewal.
func TestGrant_EveryAttemptHasItsAnchor(t *testing.T) {
	c := newSetClock()
	first := grantOn(c)
	c.passes(6 * time.Second)
	anchor := AnchorOn(c) // the request is sent here
	c.passes(5 * time.Second)
	renewed := anchor.Grant("x", "a", 7, ttl, 0) // the answer comes here
	isGood(t, first, false)
	isGood(t, renewed, true)
	if got, want := renewed.Remaining(), Shorter(ttl)-5*time.Second; got != want {
		t.Errorf("%v remain, want %v: counted from the sending", got, want)
	}
	if got := anchor.Elapsed(); got != 5*time.Second {
		t.Errorf("elapsed %v since the anchor, want 5s", got)
	}
	c.passes(5 * time.Second)
	isGood(t, renewed, false)
	late := anchor.Grant("x", "a", 7, ttl, 0) // an answer that comes after the deadline
	isGood(t, late, false)
}

func TestGrant_ParkedTimeIsNotLeaseTime(t *testing.T) {
	c := newSetClock()
	anchor := AnchorOn(c)
	c.passes(time.Hour)
	g := anchor.Grant("x", "a", 7, ttl, time.Hour)
	// The store measured the hour; its clock may have been fast.
	if got, want := g.Remaining(), Shorter(ttl)-3600*time.Millisecond; got != want {
		t.Errorf("%v remain after an hour of waiting, want %v", got, want)
	}
	if got, want := anchor.Grant("x", "a", 7, ttl, -time.Hour).Remaining(), time.Duration(0); got != want {
		t.Errorf("%v remain after a negative wait, want %v", got, want)
	}
	if got := AnchorOn(c).Grant("x", "a", 7, ttl, -time.Hour).Remaining(); got != Shorter(ttl) {
		t.Errorf("%v remain, want that a negative wait counts as none", got)
	}
}

func TestGrant_WithMargin(t *testing.T) {
	c := newSetClock()
	g := grantOn(c)
	early := g.WithMargin(2 * time.Second)
	if got, want := early.Remaining(), g.Remaining()-2*time.Second; got != want {
		t.Errorf("%v remain with a margin of 2s, want %v", got, want)
	}
	for _, none := range []time.Duration{0, -time.Second, math.MinInt64} {
		if got := g.WithMargin(none).Remaining(); got != g.Remaining() {
			t.Errorf("margin %v: %v remain, want %v", none, got, g.Remaining())
		}
	}
	if twice := early.WithMargin(time.Second).Remaining(); twice != g.Remaining()-3*time.Second {
		t.Errorf("%v remain with margins of 2s and 1s, want 3s less", twice)
	}
	isGood(t, g.WithMargin(time.Minute), false)
	isGood(t, g, true) // a value is never changed
	c.passes(8 * time.Second)
	isGood(t, early, false)
	isGood(t, g, true)
}

func TestGrant_Deadline(t *testing.T) {
	c := newSetClock()
	g := grantOn(c)
	for _, passed := range []time.Duration{0, 4 * time.Second, time.Hour} {
		c.passes(passed)
		before := time.Now()
		d := g.Deadline()
		after := time.Now()
		left := Shorter(ttl) - c.Now().Since(newSetClock().Now())
		if d.Before(before.Add(left)) || d.After(after.Add(left)) {
			t.Errorf("deadline in %v, want in %v", d.Sub(before), left)
		}
	}
}

func TestGrant_ByHandHasNoDeadline(t *testing.T) {
	g := Grant{Name: "x", Owner: "a", Token: 7}
	isGood(t, g, false)
	isGood(t, g.WithMargin(time.Second), false)
	if d := g.Deadline(); !d.IsZero() {
		t.Errorf("deadline %v, want the zero time", d)
	}
}

func TestGrant_OnTheMachinesClock(t *testing.T) {
	before := time.Now()
	a := NewAnchor()
	g := a.Grant("x", "a", 7, time.Hour, 0)
	isGood(t, g, true)
	// The anchor was not taken before, so no more can have passed.
	if e := a.Elapsed(); e < 0 || e > time.Since(before)+time.Minute {
		t.Errorf("elapsed %v", e)
	}
}

func TestGrant_ConcurrentUse(t *testing.T) {
	c := newSetClock()
	g := grantOn(c)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			lost := false
			for range 1000 {
				c.moves(10*time.Millisecond, 0)
				err := g.WithMargin(time.Millisecond).Check()
				if lost && err == nil {
					t.Error("a lost grant is good again (G4)")
				}
				lost = err != nil
				g.Remaining()
			}
		})
	}
	all.Wait()
	isGood(t, g, false)
}

// Whatever the clocks do, what remains only shrinks and lost is for ever; and
// the grant is lost as soon as either clock has run for the ttl.
func TestGrant_NeverGoesFromLostToGood(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newSetClock()
		start := c.Now()
		length := time.Duration(rapid.Int64Range(1, int64(time.Minute)).Draw(t, "ttl"))
		g := AnchorOn(c).Grant("x", "a", 7, length, 0)
		before, lost := g.Remaining(), g.Check() != nil
		step := rapid.Int64Range(-int64(time.Minute), int64(time.Minute))
		for range rapid.IntRange(1, 50).Draw(t, "looks") {
			c.moves(time.Duration(max(step.Draw(t, "boot"), 0)), time.Duration(step.Draw(t, "wall")))
			remaining, err := g.Remaining(), g.Check()
			if remaining > before {
				t.Fatalf("%v remain after %v", remaining, before)
			}
			if lost && err == nil {
				t.Fatal("a lost grant is good again")
			}
			if (remaining == 0) != (err != nil) {
				t.Fatalf("%v remain and check says %v", remaining, err)
			}
			now := c.Now()
			if err == nil && (now.Boot-start.Boot >= Shorter(length) || now.Wall-start.Wall >= Shorter(length)) {
				t.Fatalf("good at %+v, its ttl being %v from %+v", now, length, start)
			}
			before, lost = remaining, err != nil
		}
	})
}

func TestShorterLonger(t *testing.T) {
	for _, c := range []struct{ d, shorter, longer time.Duration }{
		{0, 0, 0},
		{time.Second, 999 * time.Millisecond, 1001 * time.Millisecond},
		{15 * time.Second, 14985 * time.Millisecond, 15015 * time.Millisecond},
		{24 * time.Hour, 24*time.Hour - 86400*time.Millisecond, 24*time.Hour + 86400*time.Millisecond},
		{-time.Second, -999 * time.Millisecond, -1001 * time.Millisecond},
	} {
		if s, l := Shorter(c.d), Longer(c.d); s != c.shorter || l != c.longer {
			t.Errorf("%v: shorter %v, longer %v, want %v, %v", c.d, s, l, c.shorter, c.longer)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.Int64Range(0, math.MaxInt64).Draw(t, "d"))
		if s := Shorter(d); s < 0 || s > d {
			t.Errorf("%d: shorter %d", d, s)
		}
		if l := Longer(d); l < d {
			t.Errorf("%d: longer %d", d, l)
		}
	})
}
