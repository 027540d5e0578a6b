package sqlstore

import (
	"context"
	"time"

	"github.com/raftlease/raftlease/lease"
)

// record is a row as one statement saw it.
type record struct {
	owner   string // "" when released
	token   int64  // of the last grant
	ttl     int64  // milliseconds
	expires int64  // milliseconds of the database's clock
	now     int64  // the same clock at the statement
}

// into returns where to scan a *row* to.
func (r *record) into() []any { return []any{&r.owner, &r.token, &r.ttl, &r.expires, &r.now} }

// live reports whether somebody has the name.
func (r *record) live() bool { return r.owner != "" && r.expires > r.now }

// of reports whether g is the live grant.
func (r *record) of(g lease.Grant) bool {
	return r.live() && r.owner == g.Owner && uint64(r.token) == g.Token
}

func (r *record) remaining() time.Duration {
	if !r.live() {
		return 0
	}
	return time.Duration(r.expires-r.now) * time.Millisecond
}

// held is the refusal for a stranger.
func (r *record) held(name string) error {
	return &lease.HeldError{Name: name, Owner: r.owner, Token: uint64(r.token), Remaining: r.remaining()}
}

// lost says why g is not the live grant; r is nil when there is no such row.
func (r *record) lost(g lease.Grant) error {
	e := &lease.LostError{Name: g.Name, Owner: g.Owner, Token: g.Token, Reason: lease.ReasonGone}
	switch {
	case r == nil:
	case r.live():
		e.Reason, e.NewOwner, e.NewToken = lease.ReasonTaken, r.owner, uint64(r.token)
	case uint64(r.token) != g.Token: // somebody had it since
	case r.owner == "":
		e.Reason = lease.ReasonReleased
	case r.owner == g.Owner:
		e.Reason = lease.ReasonExpired
	}
	return e
}

// read returns the row of name, or nil.
func (s *Store) read(ctx context.Context, name string) (*record, error) {
	var r record
	found := false
	err := s.retry(ctx, reads, func(ctx context.Context) (err error) {
		found, err = s.row(ctx, s.text.read, []any{name}, r.into()...)
		return err
	})
	if err != nil || !found {
		return nil, err
	}
	return &r, nil
}

// length returns for how many milliseconds the database keeps a ttl: the length
// for a granter, and one more for two readings of a clock that were rounded down.
func length(ttl time.Duration) int64 { return lease.Longer(ttl).Milliseconds() + 1 }
