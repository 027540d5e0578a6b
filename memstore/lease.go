package memstore

import (
	"context"
	"fmt"
	"time"

	"github.com/raftlease/raftlease/lease"
)

// Acquire implements lease.Store.
func (s *Store) Acquire(ctx context.Context, name, owner string, ttl time.Duration) (lease.Grant, error) {
	if err := lease.CheckAcquire(name, owner, ttl, s.limits); err != nil {
		return lease.Grant{}, err
	}
	anchor := lease.AnchorOn(s.holder)
	now, err := s.begin(ctx)
	if err != nil {
		return lease.Grant{}, fmt.Errorf("acquire lease %q: %w", name, err)
	}
	defer s.finish(now)
	r := s.take(name, owner, ttl, now)
	if r.owner != owner {
		return lease.Grant{}, &lease.HeldError{Name: name, Owner: r.owner, Token: r.token, Remaining: r.deadline - now}
	}
	return anchor.Grant(name, owner, r.token, ttl, 0), nil
}

// Renew implements lease.Store. Only an extension to a longer ttl than the
// recorded one is a recorded change, and an event.
func (s *Store) Renew(ctx context.Context, g lease.Grant, ttl time.Duration) (lease.Grant, error) {
	if err := lease.CheckRenew(g, ttl, s.limits); err != nil {
		return lease.Grant{}, err
	}
	anchor := lease.AnchorOn(s.holder)
	now, err := s.begin(ctx)
	if err != nil {
		return lease.Grant{}, fmt.Errorf("renew lease %q: %w", g.Name, err)
	}
	defer s.finish(now)
	r := s.live(g)
	if r == nil {
		return lease.Grant{}, s.lost(g)
	}
	longer := ttl > r.ttl
	s.extend(r, ttl, now)
	if longer {
		s.publish(lease.EventExtended, r, now)
	}
	return anchor.Grant(g.Name, g.Owner, g.Token, ttl, 0), nil
}

// Release implements lease.Store. The first waiter has the name when Release
// returns.
func (s *Store) Release(ctx context.Context, g lease.Grant) error {
	if err := lease.CheckGrant(g); err != nil {
		return err
	}
	now, err := s.begin(ctx)
	if err != nil {
		return fmt.Errorf("release lease %q: %w", g.Name, err)
	}
	defer s.finish(now)
	if r := s.live(g); r != nil {
		s.free(r, lease.EventReleased, now)
	}
	return nil
}

// Break ends the live grant of name, whoever has it, and returns the record
// that it ended. It is the operator's verb: the holder goes on believing in its
// grant until it renews or its deadline passes, so two may act at once.
// ErrNotFound when the name is free.
func (s *Store) Break(ctx context.Context, name string) (lease.Record, error) {
	if err := lease.CheckName(name); err != nil {
		return lease.Record{}, err
	}
	now, err := s.begin(ctx)
	if err != nil {
		return lease.Record{}, fmt.Errorf("break lease %q: %w", name, err)
	}
	defer s.finish(now)
	r := s.records[name]
	if r == nil || r.owner == "" {
		return lease.Record{}, fmt.Errorf("break lease %q: %w", name, lease.ErrNotFound)
	}
	return outside(s.free(r, lease.EventBroken, now)), nil
}

// take grants name to owner when it is free, extends it when owner has it, and
// returns its record: whose it is tells what happened.
func (s *Store) take(name, owner string, ttl, now time.Duration) *record {
	r := s.records[name]
	if r == nil {
		r = &record{name: name}
		s.records[name] = r
	}
	switch r.owner {
	case "":
		s.grant(r, owner, ttl, now)
	case owner:
		s.extend(r, ttl, now)
		s.publish(lease.EventExtended, r, now)
	}
	return r
}

// grant gives the free record r to owner, with a new token (G2).
func (s *Store) grant(r *record, owner string, ttl, now time.Duration) {
	s.token++
	r.owner, r.token, r.ttl = owner, s.token, ttl
	r.deadline = now + lease.Longer(ttl)
	s.due.add(r)
	s.publish(lease.EventGranted, r, now)
}

// extend moves r's deadline to ttl from now unless it is later already: what
// was promised once stays promised (G3). The recorded ttl follows down only
// when the longer promise has run out.
func (s *Store) extend(r *record, ttl, now time.Duration) {
	if at := now + lease.Longer(ttl); at >= r.deadline {
		r.deadline, r.ttl = at, ttl
		s.due.moved(r)
	}
}

// free ends r's live grant in the way that kind says and hands the name to the
// first waiter. It returns the record that ended.
func (s *Store) free(r *record, kind lease.EventKind, now time.Duration) lease.Record {
	s.due.remove(r)
	gone := s.publish(kind, r, r.deadline) // nothing remains of it
	r.owner, r.token, r.ttl = "", 0, 0
	s.handOver(r, now)
	if r.owner == "" && len(r.data) == 0 {
		delete(s.records, r.name)
	}
	return gone
}

// live returns the record of which g is the live grant, or nil.
func (s *Store) live(g lease.Grant) *record {
	r := s.records[g.Name]
	if r == nil || r.owner != g.Owner || r.token != g.Token {
		return nil
	}
	return r
}

// lost says why g is not live.
func (s *Store) lost(g lease.Grant) error {
	e := &lease.LostError{Name: g.Name, Owner: g.Owner, Token: g.Token, Reason: s.past.ending(g)}
	if r := s.records[g.Name]; r != nil && r.owner != "" {
		e.Reason, e.NewOwner, e.NewToken = lease.ReasonTaken, r.owner, r.token
	}
	return e
}
