package leasetest

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/raftlease/raftlease/lease"
	"github.com/raftlease/raftlease/memstore"
)

// renewed changes the answer of a renewal.
func renewed(change func(g lease.Grant, ttl time.Duration, got lease.Grant, err error) (lease.Grant, error)) func(s *memstore.Store) hooks {
	return func(s *memstore.Store) hooks {
		return hooks{renew: func(ctx context.Context, g lease.Grant, ttl time.Duration) (lease.Grant, error) {
			got, err := s.Renew(ctx, g, ttl)
			return change(g, ttl, got, err)
		}}
	}
}

// toldLost changes what the owner of a lost grant is told.
func toldLost(change func(l *lease.LostError) error) func(s *memstore.Store) hooks {
	return renewed(func(_ lease.Grant, _ time.Duration, got lease.Grant, err error) (lease.Grant, error) {
		var l *lease.LostError
		if errors.As(err, &l) {
			err = change(l)
		}
		return got, err
	})
}

// revives renews grants that were lost for a reason.
func revives(reason lease.Reason) func(s *memstore.Store) hooks {
	return renewed(func(g lease.Grant, ttl time.Duration, got lease.Grant, err error) (lease.Grant, error) {
		var l *lease.LostError
		if errors.As(err, &l) && l.Reason == reason {
			return made(g.Name, g.Owner, g.Token, ttl), nil
		}
		return got, err
	})
}

// live makes g the live grant of its name where same says so.
func live(s *memstore.Store, g lease.Grant, same func(r lease.Record) bool) lease.Grant {
	if r, err := s.Get(bg, g.Name); err == nil && r.Held() && same(r) {
		g.Owner, g.Token = r.Owner, r.Token
	}
	return g
}

// renewsLive renews the live grant for whoever seems near enough.
func renewsLive(same func(r lease.Record, g lease.Grant) bool) func(s *memstore.Store) hooks {
	return func(s *memstore.Store) hooks {
		return hooks{renew: func(ctx context.Context, g lease.Grant, ttl time.Duration) (lease.Grant, error) {
			got, err := s.Renew(ctx, live(s, g, func(r lease.Record) bool { return same(r, g) }), ttl)
			if err == nil {
				got = made(g.Name, g.Owner, g.Token, ttl)
			}
			return got, err
		}}
	}
}

// keepsNothing answers renewals as if they had been done.
func keepsNothing(s *memstore.Store) hooks {
	return hooks{renew: func(ctx context.Context, g lease.Grant, ttl time.Duration) (lease.Grant, error) {
		if r, err := s.Get(ctx, g.Name); err != nil || r.Token != g.Token {
			return s.Renew(ctx, g, ttl)
		}
		return made(g.Name, g.Owner, g.Token, ttl), nil
	}}
}

var renewMutants = []mutant{
	{"renews nothing", "G3 renewing extends the promise", keepsNothing},
	{"renews nothing for a busy holder", "G3 a renewed lease outlives its first ttl", keepsNothing},
	{"shortens with a shorter renewal", "G3 renewing with a shorter ttl shortens no promise", earlier},
	{"renews what another has", "G6 renewing after a take-over is lost", revives(lease.ReasonTaken)},
	{"renews what was released", "G6 renewing after release is lost", revives(lease.ReasonReleased)},
	{"renews what expired", "G6 renewing after expiry is lost though nobody took the name", revives(lease.ReasonExpired)},
	{"renews what never was", "G6 renewing a name that never was held is lost", revives(lease.ReasonGone)},
	{"renews for another owner", "G6 renewing by another owner is lost", renewsLive(func(r lease.Record, g lease.Grant) bool { return r.Token == g.Token })},
	{"renews with any token", "G6 renewing with an old token is lost", renewsLive(func(r lease.Record, g lease.Grant) bool { return r.Owner == g.Owner })},
	{"renews with any token that is larger", "G6 renewing with an old token is lost", renewsLive(func(r lease.Record, g lease.Grant) bool { return r.Owner == g.Owner && r.Token < g.Token })},
	{"says a bare ErrLost", "G6 renewing after a take-over is lost", toldLost(func(*lease.LostError) error { return lease.ErrLost })},
	{"says lost without a token", "G6 renewing after a take-over is lost", toldLost(func(l *lease.LostError) error { l.Token = 0; return l })},
	{"says lost without a reason", "G6 renewing after release is lost", toldLost(func(l *lease.LostError) error { l.Reason = ""; return l })},
	{"says lost to the wrong owner", "G6 renewing after a take-over is lost", toldLost(func(l *lease.LostError) error { l.NewOwner = "z"; return l })},
	{"invents a new owner", "G6 renewing after release is lost", toldLost(func(l *lease.LostError) error { l.NewOwner = "z"; return l })},
	{"says held when a grant is lost", "G6 renewing after a take-over is lost", toldLost(func(l *lease.LostError) error {
		return &lease.HeldError{Name: l.Name, Owner: l.NewOwner, Token: l.NewToken, Remaining: time.Second}
	})},
	{"frees the name of a refused renewal", "G6 renewing after a take-over is lost", func(s *memstore.Store) hooks {
		return hooks{renew: func(ctx context.Context, g lease.Grant, ttl time.Duration) (lease.Grant, error) {
			got, err := s.Renew(ctx, g, ttl)
			if errors.Is(err, lease.ErrLost) {
				s.Break(ctx, g.Name)
			}
			return got, err
		}}
	}},
	{"takes the name again for a lost grant", "G6 renewing after release is lost", func(s *memstore.Store) hooks {
		return hooks{renew: func(ctx context.Context, g lease.Grant, ttl time.Duration) (lease.Grant, error) {
			got, err := s.Renew(ctx, g, ttl)
			if errors.Is(err, lease.ErrLost) {
				s.Acquire(ctx, g.Name, g.Owner, ttl)
			}
			return got, err
		}}
	}},
	{"changes the token in a renewal", "G3 renewing extends the promise", renewed(func(_ lease.Grant, _ time.Duration, got lease.Grant, err error) (lease.Grant, error) {
		if err == nil {
			got.Token++
		}
		return got, err
	})},
	{"wants its own grant values", "G6 a grant known by name, owner and token alone can be renewed and released", func(s *memstore.Store) hooks {
		return hooks{renew: func(ctx context.Context, g lease.Grant, ttl time.Duration) (lease.Grant, error) {
			if g.Check() != nil {
				return lease.Grant{}, &lease.LostError{Name: g.Name, Owner: g.Owner, Token: g.Token, Reason: lease.ReasonGone}
			}
			return s.Renew(ctx, g, ttl)
		}}
	}},
	{"renews each grant once", "G6 renewing twice does what once does", func(s *memstore.Store) hooks {
		var seen sync.Map
		return hooks{renew: func(ctx context.Context, g lease.Grant, ttl time.Duration) (lease.Grant, error) {
			if _, again := seen.LoadOrStore(g.Token, true); again {
				return lease.Grant{}, &lease.LostError{Name: g.Name, Owner: g.Owner, Token: g.Token, Reason: lease.ReasonGone}
			}
			return s.Renew(ctx, g, ttl)
		}}
	}},
}

// releasesLive releases the live grant for whoever seems near enough.
func releasesLive(same func(r lease.Record, g lease.Grant) bool) func(s *memstore.Store) hooks {
	return func(s *memstore.Store) hooks {
		return hooks{release: func(ctx context.Context, g lease.Grant) error {
			return s.Release(ctx, live(s, g, func(r lease.Record) bool { return same(r, g) }))
		}}
	}
}

func anybody(lease.Record, lease.Grant) bool { return true }

var releaseMutants = []mutant{
	{"releases nothing", "a release frees the name at once", func(*memstore.Store) hooks {
		return hooks{release: func(context.Context, lease.Grant) error { return nil }}
	}},
	{"releases later", "a release frees the name at once", func(s *memstore.Store) hooks {
		return hooks{release: func(_ context.Context, g lease.Grant) error {
			time.AfterFunc(time.Millisecond, func() { s.Release(bg, g) })
			return nil
		}}
	}},
	{"releases for another owner", "G1 a release by another owner changes nothing", releasesLive(func(r lease.Record, g lease.Grant) bool { return r.Token == g.Token })},
	{"releases with any token", "G1 a release with an old token changes nothing", releasesLive(func(r lease.Record, g lease.Grant) bool { return r.Owner == g.Owner })},
	{"releases by name", "G6 releasing twice frees no later grant", releasesLive(anybody)},
	{"finds fault with a release of nothing", "G6 a release of what is not held is no error", func(s *memstore.Store) hooks {
		return hooks{release: func(ctx context.Context, g lease.Grant) error {
			if r, err := s.Get(ctx, g.Name); err != nil || r.Token != g.Token {
				return &lease.LostError{Name: g.Name, Owner: g.Owner, Token: g.Token, Reason: lease.ReasonGone}
			}
			return s.Release(ctx, g)
		}}
	}},
	{"gives a name to nobody when an acquire is given up", "G6 the calls of one holder may be repeated in turn", ghostly},
}

// ghostly lets an acquire whose context ended take the name for nobody.
func ghostly(s *memstore.Store) hooks {
	return hooks{acquire: func(ctx context.Context, name, owner string, ttl time.Duration) (lease.Grant, error) {
		if ctx.Err() != nil {
			s.Acquire(bg, name, "ghost", ttl)
		}
		return s.Acquire(ctx, name, owner, ttl)
	}}
}
