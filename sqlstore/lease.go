package sqlstore

import (
	"context"
	"fmt"
	"time"

	"github.com/raftlease/raftlease/lease"
)

// Acquire implements lease.Store. A refusal is one statement that locks
// nothing; a grant is two.
func (s *Store) Acquire(ctx context.Context, name, owner string, ttl time.Duration) (lease.Grant, error) {
	if err := lease.CheckAcquire(name, owner, ttl, s.config.Limits); err != nil {
		return lease.Grant{}, err
	}
	g, err := s.acquire(ctx, name, owner, ttl)
	if err != nil {
		return lease.Grant{}, about("acquire", name, err)
	}
	return g, nil
}

func (s *Store) acquire(ctx context.Context, name, owner string, ttl time.Duration) (lease.Grant, error) {
	for p := (pause{}); ; {
		seen, err := s.read(ctx, name)
		switch {
		case err != nil:
			return lease.Grant{}, err
		case seen == nil:
			if err := s.create(ctx, name); err != nil {
				return lease.Grant{}, err
			}
			seen = &record{}
		case seen.live() && seen.owner != owner:
			return lease.Grant{}, seen.held(name)
		}
		var anchor lease.Anchor
		token, done, err := s.change(ctx, &anchor, s.text.acquire, name, owner, seen.token, ttl.Milliseconds(), length(ttl))
		switch {
		case err != nil:
			return lease.Grant{}, err
		case done:
			return anchor.Grant(name, owner, token, ttl, 0), nil
		}
		// The record changed since it was seen.
		if err := p.wait(ctx); err != nil {
			return lease.Grant{}, err
		}
	}
}

// create makes a free record of name, unless there is one.
func (s *Store) create(ctx context.Context, name string) error {
	return s.retry(ctx, reads, func(ctx context.Context) error {
		err := s.exec(ctx, s.text.create, name)
		if err != nil && s.dialect.judge(err) == exists {
			return nil
		}
		return err
	})
}

// Renew implements lease.Store. It is one statement.
func (s *Store) Renew(ctx context.Context, g lease.Grant, ttl time.Duration) (lease.Grant, error) {
	if err := lease.CheckRenew(g, ttl, s.config.Limits); err != nil {
		return lease.Grant{}, err
	}
	var anchor lease.Anchor
	err := s.changeLive(ctx, g, &anchor, s.text.renew, g.Name, g.Owner, int64(g.Token), ttl.Milliseconds(), length(ttl))
	if err != nil {
		return lease.Grant{}, about("renew", g.Name, err)
	}
	return anchor.Grant(g.Name, g.Owner, g.Token, ttl, 0), nil
}

// Release implements lease.Store. The row stays, since it carries the token.
func (s *Store) Release(ctx context.Context, g lease.Grant) error {
	if err := lease.CheckGrant(g); err != nil {
		return err
	}
	_, _, err := s.change(ctx, nil, s.text.release, g.Name, g.Owner, int64(g.Token))
	return about("release", g.Name, err)
}

// Put implements lease.DataStore. The token and the time are judged in the
// statement that writes (G7).
func (s *Store) Put(ctx context.Context, g lease.Grant, data []byte) error {
	if err := lease.CheckPut(g, data); err != nil {
		return err
	}
	by := int64(g.Token)
	if len(data) == 0 {
		data, by = []byte{}, 0
	}
	return about("put data of", g.Name, s.changeLive(ctx, g, nil, s.text.put, g.Name, g.Owner, int64(g.Token), data, by))
}

// changeLive makes a change that only the live grant g may make, or says why g
// is lost.
func (s *Store) changeLive(ctx context.Context, g lease.Grant, anchor *lease.Anchor, text string, args ...any) error {
	for p := (pause{}); ; {
		_, done, err := s.change(ctx, anchor, text, args...)
		if err != nil || done {
			return err
		}
		r, err := s.read(ctx, g.Name)
		if err != nil {
			return err
		}
		if r == nil || !r.of(g) {
			return r.lost(g)
		}
		// The database's clock was set back in between.
		if err := p.wait(ctx); err != nil {
			return err
		}
	}
}

// change runs a statement that returns the token if it changed the record. The
// anchor is set anew before each attempt, if there is one.
func (s *Store) change(ctx context.Context, anchor *lease.Anchor, text string, args ...any) (token uint64, done bool, err error) {
	var t int64
	err = s.retry(ctx, writes, func(ctx context.Context) (err error) {
		if anchor != nil {
			*anchor = lease.AnchorOn(s.config.Holder)
		}
		done, err = s.row(ctx, text, args, &t)
		return err
	})
	return uint64(t), done && err == nil, err
}

// about adds to err what was being done. Refusals say that themselves.
func about(what, name string, err error) error {
	switch err.(type) {
	case nil, *lease.HeldError, *lease.LostError:
		return err
	}
	return fmt.Errorf("%s lease %q: %w", what, name, err)
}
