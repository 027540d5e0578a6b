package memstore

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/raftlease/raftlease/lease"
)

func TestStore_CloseEndsEveryCall(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Store) {
		g := acquire(t, s, "x", "a", time.Minute)
		w := parks(bg, s, "x", "b", time.Minute)
		watched := make(chan error)
		go func() { watched <- s.Watch(bg, "", 0, func(lease.Event) error { return nil }) }()

		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				if err := s.Close(); err != nil {
					t.Errorf("close: %v", err)
				}
			})
		}
		all.Wait()
		<-w.done
		_, get := s.Get(bg, "x")
		_, list := s.List(bg, "")
		_, acquired := s.Acquire(bg, "x", "a", time.Minute)
		_, waited := s.AcquireWait(bg, "y", "a", time.Minute)
		_, renewed := s.Renew(bg, g, time.Minute)
		_, broken := s.Break(bg, "x")
		for verb, err := range map[string]error{
			"parked": w.err, "watched": <-watched, "get": get, "list": list, "acquire": acquired, "wait": waited, "renew": renewed,
			"break": broken, "release": s.Release(bg, g), "put": s.Put(bg, g, nil),
			"watch": s.Watch(bg, "", 0, func(lease.Event) error { return nil }),
		} {
			if !errors.Is(err, lease.ErrClosed) {
				t.Errorf("%s: %v, want lease.ErrClosed", verb, err)
			}
		}
		if err := g.Check(); err != nil {
			t.Errorf("a grant of a closed store: %v, want it to keep its deadline", err)
		}
		time.Sleep(time.Hour) // no timer is left to ring
		if g.Check() == nil {
			t.Error("a grant of a closed store never ends (G4)")
		}
	})
}

func TestConfig_Validate(t *testing.T) {
	limits := func(shortest, longest time.Duration) Config {
		return Config{Limits: lease.Limits{MinTTL: shortest, MaxTTL: longest}}
	}
	for _, c := range []struct {
		name string
		c    Config
		good bool
	}{
		{"zero", Config{}, true},
		{"shortest", limits(time.Millisecond, 0), true},
		{"longest", limits(0, 365*24*time.Hour), true},
		{"equal", limits(time.Minute, time.Minute), true},
		{"below a millisecond", limits(time.Millisecond-1, 0), false},
		{"negative", limits(-time.Second, 0), false},
		{"more than a year", limits(0, 365*24*time.Hour+1), false},
		{"swapped", limits(time.Minute, time.Second), false},
		{"shortest above the default longest", limits(25*time.Hour, 0), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := Open(c.c)
			var bad *lease.InvalidError
			if c.good {
				if err != nil {
					t.Fatalf("open: %v", err)
				}
				s.Close()
			} else if s != nil || !errors.As(err, &bad) || bad.Faults[0].Field != "Limits" {
				t.Errorf("open: %v, want a *lease.InvalidError that names Limits", err)
			}
		})
	}
}

func TestStore_LimitsBoundTheTTL(t *testing.T) {
	s, err := Open(Config{Limits: lease.Limits{MinTTL: 50 * time.Millisecond, MaxTTL: time.Minute}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	g := acquire(t, s, "x", "a", 50*time.Millisecond)
	for _, ttl := range []time.Duration{49 * time.Millisecond, time.Minute + time.Millisecond} {
		_, acquired := s.Acquire(bg, "x", "a", ttl)
		_, waited := s.AcquireWait(bg, "x", "a", ttl)
		_, renewed := s.Renew(bg, g, ttl)
		for _, err := range []error{acquired, waited, renewed} {
			if !errors.Is(err, lease.ErrInvalid) {
				t.Errorf("ttl %v: %v, want lease.ErrInvalid (G8)", ttl, err)
			}
		}
	}
	acquire(t, s, "y", "a", time.Minute)
}
