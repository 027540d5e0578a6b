package leasetest

import (
	"context"
	"errors"
	"sync"
	"testing/synctest"
	"time"

	"github.com/raftlease/raftlease/lease"
	"github.com/raftlease/raftlease/memstore"
)

var bg = context.Background()

// made is a grant as a broken store makes it up.
func made(name, owner string, token uint64, ttl time.Duration) lease.Grant {
	return lease.AnchorOn(bubbleClock{}).Grant(name, owner, token, ttl, 0)
}

// grantToAll breaks G1.
func grantToAll(s *memstore.Store) hooks {
	return hooks{acquire: func(ctx context.Context, name, owner string, ttl time.Duration) (lease.Grant, error) {
		g, err := s.Acquire(ctx, name, owner, ttl)
		var held *lease.HeldError
		if errors.As(err, &held) {
			return made(name, owner, held.Token+1, ttl), nil
		}
		return g, err
	}}
}

// toldHeld changes what a refused owner is told.
func toldHeld(change func(h *lease.HeldError) error) func(s *memstore.Store) hooks {
	return func(s *memstore.Store) hooks {
		return hooks{acquire: func(ctx context.Context, name, owner string, ttl time.Duration) (lease.Grant, error) {
			g, err := s.Acquire(ctx, name, owner, ttl)
			var held *lease.HeldError
			if errors.As(err, &held) {
				err = change(held)
			}
			return g, err
		}}
	}
}

// granted changes the grants of an acquire.
func granted(change func(g lease.Grant) lease.Grant) func(s *memstore.Store) hooks {
	return func(s *memstore.Store) hooks {
		return hooks{acquire: func(ctx context.Context, name, owner string, ttl time.Duration) (lease.Grant, error) {
			g, err := s.Acquire(ctx, name, owner, ttl)
			if err == nil {
				g = change(g)
			}
			return g, err
		}}
	}
}

// sameToken shows every grant with one token, if keep says so.
func sameToken(keep func(before, g lease.Grant) bool) func(s *memstore.Store) hooks {
	return func(s *memstore.Store) hooks {
		var mu sync.Mutex
		first := map[string]lease.Grant{} // as shown
		inner := map[string]uint64{}      // token of the live grant
		inside := func(g lease.Grant) lease.Grant {
			mu.Lock()
			defer mu.Unlock()
			if first[g.Name].Token == g.Token && g.Token != 0 {
				g.Token = inner[g.Name]
			}
			return g
		}
		return hooks{
			acquire: func(ctx context.Context, name, owner string, ttl time.Duration) (lease.Grant, error) {
				g, err := s.Acquire(ctx, name, owner, ttl)
				if err != nil {
					return g, err
				}
				mu.Lock()
				defer mu.Unlock()
				before := first[name]
				inner[name] = g.Token
				if before.Token != 0 && keep(before, g) {
					g.Token = before.Token
				}
				first[name] = g
				return g, nil
			},
			release: func(ctx context.Context, g lease.Grant) error { return s.Release(ctx, inside(g)) },
			get: func(ctx context.Context, name string) (lease.Record, error) {
				r, err := s.Get(ctx, name)
				mu.Lock()
				defer mu.Unlock()
				if r.Held() && r.Token == inner[name] {
					r.Token = first[name].Token
				}
				return r, err
			},
		}
	}
}

// earlier says that a promise ends when the last call said so.
func earlier(s *memstore.Store) hooks {
	var mu sync.Mutex
	until := map[string]time.Time{}
	note := func(name string, ttl time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		until[name] = time.Now().Add(ttl)
	}
	return hooks{
		acquire: func(ctx context.Context, name, owner string, ttl time.Duration) (lease.Grant, error) {
			g, err := s.Acquire(ctx, name, owner, ttl)
			var held *lease.HeldError
			if errors.As(err, &held) {
				mu.Lock()
				defer mu.Unlock()
				held.Remaining = time.Until(until[name])
				return g, held
			}
			note(name, ttl)
			return g, err
		},
		renew: func(ctx context.Context, g lease.Grant, ttl time.Duration) (lease.Grant, error) {
			note(g.Name, ttl)
			return s.Renew(ctx, g, ttl)
		},
	}
}

// shortened ends grants after nine tenths of their ttl.
func shortened(s *memstore.Store) hooks {
	return hooks{acquire: func(ctx context.Context, name, owner string, ttl time.Duration) (lease.Grant, error) {
		g, err := s.Acquire(ctx, name, owner, ttl)
		if err == nil && ttl == lease.DefaultMin {
			time.AfterFunc(ttl*9/10, func() { s.Release(bg, g) })
		}
		return g, err
	}}
}

// checkThenAct looks whether a name is free and takes it by force then.
func checkThenAct(s *memstore.Store) hooks {
	return hooks{acquire: func(ctx context.Context, name, owner string, ttl time.Duration) (lease.Grant, error) {
		if _, err := s.Get(ctx, name); !errors.Is(err, lease.ErrNotFound) {
			return s.Acquire(ctx, name, owner, ttl)
		}
		time.Sleep(time.Millisecond)
		s.Break(ctx, name)
		return s.Acquire(ctx, name, owner, ttl)
	}}
}

var acquireMutants = []mutant{
	{"refuses a free name", "G1 a free name is granted", func(s *memstore.Store) hooks {
		return hooks{acquire: func(_ context.Context, name, _ string, _ time.Duration) (lease.Grant, error) {
			return lease.Grant{}, &lease.HeldError{Name: name, Owner: "z", Token: 1, Remaining: time.Second}
		}}
	}},
	{"grants without a token", "G1 a free name is granted", granted(func(g lease.Grant) lease.Grant { g.Token = 0; return g })},
	{"grants with a token above 2^53", "G1 a free name is granted", granted(func(g lease.Grant) lease.Grant { g.Token |= 1 << 53; return g })},
	{"grants another name", "G1 a free name is granted", granted(func(g lease.Grant) lease.Grant { g.Name += "x"; return g })},
	{"grants without a deadline", "G1 a free name is granted", granted(func(g lease.Grant) lease.Grant {
		return lease.Grant{Name: g.Name, Owner: g.Owner, Token: g.Token, TTL: g.TTL}
	})},
	{"grants a held name", "G1 a second owner is refused and told who holds the name", grantToAll},
	{"refuses with a bare ErrHeld", "G1 a second owner is refused and told who holds the name", toldHeld(func(*lease.HeldError) error { return lease.ErrHeld })},
	{"refuses without the holder", "G1 a second owner is refused and told who holds the name", toldHeld(func(h *lease.HeldError) error { h.Owner = ""; return h })},
	{"refuses without the token", "G1 a second owner is refused and told who holds the name", toldHeld(func(h *lease.HeldError) error { h.Token = 0; return h })},
	{"refuses without the time that remains", "G1 a second owner is refused and told who holds the name", toldHeld(func(h *lease.HeldError) error { h.Remaining = 0; return h })},
	{"refuses with more time than the ttl", "G1 a second owner is refused and told who holds the name", toldHeld(func(h *lease.HeldError) error { h.Remaining *= 2; return h })},
	{"lets the refused have the name earlier", "G1 a second owner is refused and told who holds the name", toldHeld(func(h *lease.HeldError) error { h.Remaining -= h.Remaining / 100; return h })},
	{"uses a token again after a release", "G2 tokens rise across releases", sameToken(func(_, _ lease.Grant) bool { return true })},
	{"uses a token again after expiry", "G2 a take-over after expiry gets a larger token", sameToken(func(_, _ lease.Grant) bool { return true })},
	{"revives the same owner's token", "G2 the same owner gets a larger token after expiry", sameToken(func(b, g lease.Grant) bool { return b.Owner == g.Owner })},
	{"makes a new grant for the owner who asks again", "G6 the owner acquires again with the same token", newEachTime},
	{"makes a new grant for the owner who repeats", "G6 acquiring twice makes one grant", newEachTime},
	{"does not extend for the owner who asks again", "G3 acquiring again extends the promise", func(s *memstore.Store) hooks {
		return hooks{acquire: func(ctx context.Context, name, owner string, ttl time.Duration) (lease.Grant, error) {
			if r, err := s.Get(ctx, name); err == nil && r.Owner == owner {
				return made(name, owner, r.Token, ttl), nil
			}
			return s.Acquire(ctx, name, owner, ttl)
		}}
	}},
	{"shortens with a shorter acquire", "G3 acquiring again with a shorter ttl shortens no promise", earlier},
	{"has no guarantee", "the guarantee is exclusive or eventual", func(*memstore.Store) hooks {
		return hooks{guarantee: func() lease.Guarantee { return 0 }}
	}},
	{"ends grants early", "G3 nobody else is granted a name before its ttl has passed", shortened},
	{"ends grants early for waiters", "G3 a waiter is granted the name after expiry and not before", shortened},
	{"counts the holder's ttl in full", "G1 a free name is granted", granted(func(g lease.Grant) lease.Grant {
		return lease.AnchorOn(bubbleClock{}).Grant(g.Name, g.Owner, g.Token, g.TTL, g.TTL-lease.Shorter(g.TTL))
	})},
	{"lets the holder believe for longer", "G4 the holder knows before anybody else is granted the name", believes},
	{"lets the holder believe without end", "G4 a grant runs out by the local clock alone", believes},
	{"anchors at the answer", "G4 a deadline is anchored before the request is sent", anchorLate},
	{"anchors a renewal at the answer", "G4 a renewal's deadline is anchored before the request is sent", anchorLate},
	{"has two winners", "G1 of 64 contenders one wins", checkThenAct},
	{"lets contenders meet", "G1 contenders that take turns never meet", checkThenAct},
	{"forgets names when it has many", "G1 many names are held at once", func(s *memstore.Store) hooks {
		return hooks{acquire: func(ctx context.Context, name, owner string, ttl time.Duration) (lease.Grant, error) {
			if all, err := s.List(ctx, ""); err == nil && len(all) > 100 {
				s.Break(ctx, all[0].Name)
			}
			return s.Acquire(ctx, name, owner, ttl)
		}}
	}},
	{"leaves a name to nobody when a context ends midway", "G6 contexts that end during calls leave a state that retries mend", func(s *memstore.Store) hooks {
		return hooks{acquire: func(ctx context.Context, name, owner string, ttl time.Duration) (lease.Grant, error) {
			synctest.Wait() // the context has ended, if it does
			if ctx.Err() != nil {
				s.Acquire(bg, name, "ghost", ttl)
			}
			return s.Acquire(ctx, name, owner, ttl)
		}}
	}},
}

func newEachTime(s *memstore.Store) hooks {
	return hooks{acquire: func(ctx context.Context, name, owner string, ttl time.Duration) (lease.Grant, error) {
		if r, err := s.Get(ctx, name); err == nil && r.Owner == owner {
			s.Break(ctx, name)
		}
		return s.Acquire(ctx, name, owner, ttl)
	}}
}

func believes(s *memstore.Store) hooks {
	longer := func(g lease.Grant, err error) (lease.Grant, error) {
		if err == nil {
			g = lease.AnchorOn(bubbleClock{}).Grant(g.Name, g.Owner, g.Token, g.TTL, g.TTL)
		}
		return g, err
	}
	return hooks{
		acquire: func(ctx context.Context, name, owner string, ttl time.Duration) (lease.Grant, error) {
			return longer(s.Acquire(ctx, name, owner, ttl))
		},
		renew: func(ctx context.Context, g lease.Grant, ttl time.Duration) (lease.Grant, error) {
			return longer(s.Renew(ctx, g, ttl))
		},
	}
}

// anchorLate is slow to answer and counts from there.
func anchorLate(s *memstore.Store) hooks {
	late := func(g lease.Grant, err error) (lease.Grant, error) {
		time.Sleep(50 * time.Millisecond)
		if err == nil {
			g = made(g.Name, g.Owner, g.Token, g.TTL)
		}
		return g, err
	}
	return hooks{
		acquire: func(ctx context.Context, name, owner string, ttl time.Duration) (lease.Grant, error) {
			return late(s.Acquire(ctx, name, owner, ttl))
		},
		renew: func(ctx context.Context, g lease.Grant, ttl time.Duration) (lease.Grant, error) {
			return late(s.Renew(ctx, g, ttl))
		},
	}
}
