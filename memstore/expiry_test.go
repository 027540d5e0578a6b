package memstore

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/raftlease/raftlease/internal/clock"
	"github.com/raftlease/raftlease/lease"
	"pgregory.net/rapid"
)

// G3: to the nanosecond, ttl and drift.
func TestStore_ExpiresAfterTTLAndDrift(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Store) {
		g := acquire(t, s, "x", "a", 10*time.Second)
		time.Sleep(lease.Longer(10*time.Second) - 1)
		if r := remaining(t, s, "x"); r != 1 {
			t.Errorf("%v remain, want 1ns", r)
		}
		if g.Check() == nil {
			t.Error("the holder believes in its grant up to the last moment, want it to stop earlier (G4)")
		}
		time.Sleep(time.Nanosecond)
		if next := acquire(t, s, "x", "b", time.Second); next.Token <= g.Token {
			t.Errorf("token %d after %d (G2)", next.Token, g.Token)
		}
		lostBecause(t, s, g, lease.ReasonTaken)
	})
}

// The holder stops 0.1 % before and the store waits 0.1 % longer.
func TestStore_HolderStopsBeforeTheTTL(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Store) {
		g := acquire(t, s, "x", "a", 10*time.Second)
		time.Sleep(lease.Shorter(10*time.Second) - 1)
		if err := g.Check(); err != nil {
			t.Errorf("a nanosecond before the deadline: %v", err)
		}
		time.Sleep(time.Nanosecond)
		if g.Check() == nil {
			t.Error("the grant is good at its deadline (G4)")
		}
		renewed := renew(t, s, g, 10*time.Second) // the store still has it
		if renewed.Check() != nil || g.Check() == nil {
			t.Errorf("renewed: %v; the value that was over: %v", renewed.Check(), g.Check())
		}
	})
}

func TestStore_TimerExpiresWithoutACall(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Store) {
		start := time.Now()
		x := acquire(t, s, "x", "a", 10*time.Second)
		acquire(t, s, "y", "a", 3*time.Second) // the alarm has to move forward
		acquire(t, s, "z", "a", 11*time.Second)
		ends := map[string]time.Duration{
			"x": 2*time.Second + lease.Longer(10*time.Second), "y": lease.Longer(3 * time.Second), "z": lease.Longer(11 * time.Second),
		}
		waiters := map[string]*waiting{}
		for name := range ends {
			waiters[name] = parks(bg, s, name, "b", time.Minute)
		}
		time.Sleep(2 * time.Second)
		renew(t, s, x, 10*time.Second) // now behind z; after this nobody calls
		for name, w := range waiters {
			<-w.done
			if got := w.at.Sub(start); got != ends[name] {
				t.Errorf("the waiter for %q was served after %v, want %v", name, got, ends[name])
			}
		}
	})
}

func TestStore_AlarmThatRingsTooEarlyIsSetAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Store) {
		start := time.Now()
		g := acquire(t, s, "x", "a", 10*time.Second)
		w := parks(bg, s, "x", "b", time.Minute)
		time.Sleep(5 * time.Second)
		renew(t, s, g, 10*time.Second)
		<-w.done
		if got, want := w.at.Sub(start), 5*time.Second+lease.Longer(10*time.Second); got != want {
			t.Errorf("the waiter was served after %v, want %v", got, want)
		}
	})
}

func TestStore_EqualDeadlinesEndInOrderOfName(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Store) {
		for _, name := range []string{"c", "a", "d", "b"} {
			acquire(t, s, name, "o", time.Second)
		}
		var names []string
		enough := errors.New("enough")
		err := s.Watch(bg, "", 0, func(v lease.Event) error {
			if v.Kind == lease.EventExpired {
				names = append(names, v.Record.Name)
			}
			if len(names) == 4 {
				return enough
			}
			return nil
		})
		if err != enough || !slices.IsSorted(names) {
			t.Errorf("expired in the order %q (%v), want that of the names", names, err)
		}
	})
}

// G3: what was promised stays promised; the recorded ttl follows later.
func TestStore_ShorterTTLFollowsDownOnceTheLongerRanOut(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Store) {
		g := acquire(t, s, "x", "a", 10*time.Second)
		recorded := func(want time.Duration) {
			t.Helper()
			if r, err := s.Get(bg, "x"); err != nil || r.TTL != want {
				t.Errorf("recorded ttl %v (%v), want %v", r.TTL, err, want)
			}
		}
		short := renew(t, s, g, 2*time.Second)
		if got, want := short.Remaining(), lease.Shorter(2*time.Second); got != want {
			t.Errorf("%v remain for the renewed value, want %v", got, want)
		}
		recorded(10 * time.Second)
		if got, want := remaining(t, s, "x"), lease.Longer(10*time.Second); got != want {
			t.Errorf("%v remain for others, want %v", got, want)
		}
		time.Sleep(9 * time.Second)
		renew(t, s, g, 2*time.Second)
		recorded(2 * time.Second)
		if got, want := remaining(t, s, "x"), lease.Longer(2*time.Second); got != want {
			t.Errorf("%v remain for others, want %v", got, want)
		}
	})
}

func TestStore_KeepsNothingOfWhatEnded(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Store) {
		for i := range 100 {
			g := acquire(t, s, fmt.Sprint(i), "a", time.Second)
			if i%2 == 0 {
				if err := s.Put(bg, g, []byte("x")); err != nil {
					t.Fatal(err)
				}
				if err := s.Put(bg, g, nil); err != nil {
					t.Fatal(err)
				}
			}
			if i%3 == 0 {
				release(t, s, g)
			}
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.records) != 0 || len(s.due) != 0 || s.alarm.timer != nil {
			t.Errorf("%d records, %d deadlines, timer %v; want nothing", len(s.records), len(s.due), s.alarm.timer)
		}
	})
}

// A store does what the plainest model of a lease does (G1, G2, G3), whatever
// the order of calls and times.
func TestStore_DoesWhatTheModelDoes(t *testing.T) {
	type modelled struct {
		owner    string
		token    uint64
		deadline time.Duration
	}
	rapid.Check(t, func(t *rapid.T) {
		now := time.Duration(0)
		s := open(Config{}, func() time.Duration { return now })
		defer s.Close()
		model := map[string]modelled{}
		last := uint64(0)
		given := []lease.Grant{{Name: "x", Owner: "a", Token: 1}}
		ttls := rapid.SampledFrom([]time.Duration{time.Second, 2 * time.Second, 10 * time.Second})
		live := func(name string) (modelled, bool) {
			m, ok := model[name]
			return m, ok && m.deadline > now
		}
		for range rapid.IntRange(1, 60).Draw(t, "calls") {
			ttl := ttls.Draw(t, "ttl")
			until := now + lease.Longer(ttl)
			old := rapid.SampledFrom(given).Draw(t, "grant")
			m, ok := live(old.Name)
			is := ok && m.owner == old.Owner && m.token == old.Token
			switch rapid.IntRange(0, 3).Draw(t, "verb") {
			case 0:
				name := rapid.SampledFrom([]string{"x", "y", "z"}).Draw(t, "name")
				owner := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "owner")
				m, ok := live(name)
				g, err := s.Acquire(bg, name, owner, ttl)
				switch {
				case ok && m.owner != owner:
					var h *lease.HeldError
					if !errors.As(err, &h) || h.Owner != m.owner || h.Token != m.token || h.Remaining != m.deadline-now {
						t.Fatalf("acquire: %+v, %v, want held by %+v at %v", g, err, m, now)
					}
					continue
				case ok && g.Token != m.token:
					t.Fatalf("acquire again: token %d, %v, want %d", g.Token, err, m.token)
				case !ok && (err != nil || g.Token <= last):
					t.Fatalf("acquire: token %d, %v, want one larger than %d", g.Token, err, last)
				}
				last = max(last, g.Token)
				model[name] = modelled{owner, g.Token, max(until, m.deadline)}
				if !ok {
					model[name] = modelled{owner, g.Token, until}
				}
				given = append(given, g)
			case 1:
				_, err := s.Renew(bg, old, ttl)
				if is != (err == nil) || !is && !errors.Is(err, lease.ErrLost) {
					t.Fatalf("renew %+v: %v, the live one is %+v (%v)", old, err, m, ok)
				}
				if is {
					m.deadline = max(until, m.deadline)
					model[old.Name] = m
				}
			case 2:
				if err := s.Release(bg, old); err != nil {
					t.Fatalf("release: %v", err)
				}
				if is {
					delete(model, old.Name)
				}
			case 3:
				now += rapid.SampledFrom([]time.Duration{0, 1, time.Second, lease.Longer(time.Second), 5 * time.Second}).Draw(t, "passes")
			}
		}
	})
}

func TestStore_HolderClock(t *testing.T) {
	const ttl = 10 * time.Second
	for _, c := range []struct {
		name       string
		boot, wall time.Duration
		good       bool
	}{
		{"G4 a suspended machine loses its grant", time.Hour, time.Hour, false},
		{"G4 a suspend is counted though the wall clock was set back", time.Hour, -time.Hour, false},
		{"G4 a wall clock set forward costs the grant", 0, time.Hour, false},
		{"G4 a wall clock set back changes nothing", time.Second, -time.Hour, true},
		{"G4 at the deadline the grant is over", lease.Shorter(ttl), 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			holder := &handClock{at: clock.Reading{Boot: time.Hour, Wall: 50 * 365 * 24 * time.Hour}}
			s := open(Config{Holder: holder}, func() time.Duration { return 0 }) // the store's clock stands
			defer s.Close()
			g := acquire(t, s, "x", "a", ttl)
			holder.moves(c.boot, c.wall)
			if err := g.Check(); (err == nil) != c.good {
				t.Errorf("check: %v, want good: %v", err, c.good)
			}
			holder.moves(0, -c.wall) // once lost, lost for ever
			if err := g.Check(); (err == nil) != c.good {
				t.Errorf("check after the clock was set right: %v, want good: %v", err, c.good)
			}
			if r := remaining(t, s, "x"); r != lease.Longer(ttl) {
				t.Errorf("%v remain by the store's clock, want %v (G3)", r, lease.Longer(ttl))
			}
			// The holder lost it, the store did not: it may be renewed.
			if err := renew(t, s, g, ttl).Check(); err != nil {
				t.Errorf("renewed: %v", err)
			}
		})
	}
}
