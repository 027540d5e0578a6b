package leasetest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/raftlease/raftlease/lease"
)

var invalidCases = []one{
	{"G8 an acquire with bad input names the fields", 0, invalidAcquire},
	{"G8 a waiting acquire with bad input names the fields", waiter, invalidAcquireWait},
	{"G8 a renewal with bad input names the fields", 0, invalidRenew},
	{"G8 a release with bad input names the fields", 0, invalidRelease},
	{"G8 a put with bad input names the fields", dataStore, invalidPut},
	{"G8 a read with bad input names the fields", inspector, invalidRead},
	{"G8 a watch with a bad prefix names the field", watcher, invalidWatch},
}

// badNames are refused as names and as owners.
func badNames() []string {
	return []string{
		"", strings.Repeat("n", 256), strings.Repeat("é", 128), strings.Repeat("n", 1<<20),
		"bad\xff", "\xc3", "\xed\xa0\x80", "nul\x00", "\x00", "line\nbreak", "tab\t", "\rreturn", "esc\x1b[0m", "del\x7f", "c1\u0085",
		" leading", "trailing ", " ", "\u00a0no-break", "ideographic\u3000", "line separator\u2028",
	}
}

// badPrefixes are refused as prefixes, which may be empty and end in a space.
func badPrefixes() []string { return []string{strings.Repeat("n", 256), "bad\xff", "\xc3"} }

func (e *env) badTTLs() []time.Duration {
	return []time.Duration{
		0, 1, -1, -time.Second, 1500 * time.Microsecond, e.short + 500*time.Microsecond, e.short + 1,
		math.MaxInt64, math.MinInt64,
	}
}

func badTokens() []uint64 { return []uint64{0, 1 << 53, 1<<53 + 1, 1 << 63, math.MaxUint64} }

// refusesInput checks that a call fails with an error that names exactly these
// fields, all of them at once.
func (e *env) refusesInput(what string, do func(ctx context.Context) error, fields ...string) {
	e.Helper()
	err := e.call(what, do)
	var bad *lease.InvalidError
	if !errors.As(err, &bad) || !errors.Is(err, lease.ErrInvalid) {
		e.Errorf("%s: error %v (%T), want a *lease.InvalidError (G8)", what, err, err)
		return
	}
	var named []string
	for _, f := range bad.Faults {
		named = append(named, f.Field)
		if f.Value == "" || f.Allowed == "" {
			e.Errorf("%s: fault %+v lacks the value or what is allowed (G8)", what, f)
		}
	}
	slices.Sort(named)
	slices.Sort(fields)
	if named = slices.Compact(named); !slices.Equal(named, fields) {
		e.Errorf("%s: faults in %q, want %q (G8)", what, named, fields)
	}
}

func shown(s string) string {
	if len(s) > 40 {
		return fmt.Sprintf("%.20q… of %d bytes", s, len(s))
	}
	return fmt.Sprintf("%q", s)
}

// badAcquires calls f with every kind of bad arguments of an acquire.
func (e *env) badAcquires(f func(ctx context.Context, name, owner string, ttl time.Duration) (lease.Grant, error)) {
	e.Helper()
	try := func(name, owner string, ttl time.Duration, fields ...string) {
		e.Helper()
		var g lease.Grant
		what := fmt.Sprintf("name %s, owner %s, ttl %v", shown(name), shown(owner), ttl)
		e.refusesInput(what, func(ctx context.Context) (err error) {
			g, err = f(ctx, name, owner, ttl)
			return err
		}, fields...)
		if g != (lease.Grant{}) {
			e.Errorf("%s: grant %+v together with an error", what, g)
		}
	}
	for _, bad := range badNames() {
		try(bad, "a", e.long, "name")
		try(e.name("x"), bad, e.long, "owner")
		try(bad, bad, 0, "name", "owner", "ttl")
	}
	for _, bad := range e.badTTLs() {
		try(e.name("x"), "a", bad, "ttl")
	}
}

func invalidAcquire(e *env) {
	e.badAcquires(e.store(0).Acquire)
	e.acquire(e.store(0), e.name("x"), "b", e.long) // nothing was granted
}

func invalidAcquireWait(e *env) {
	held := e.acquire(e.store(0), e.name("x"), "b", e.long)
	e.badAcquires(e.store(0).(lease.Waiter).AcquireWait) // is refused at once, not parked
	e.refused(e.store(0), held)
}

// badGrants calls f with every kind of bad grant.
func (e *env) badGrants(f func(ctx context.Context, g lease.Grant) error) {
	e.Helper()
	try := func(g lease.Grant, fields ...string) {
		e.Helper()
		what := fmt.Sprintf("name %s, owner %s, token %d", shown(g.Name), shown(g.Owner), g.Token)
		e.refusesInput(what, func(ctx context.Context) error { return f(ctx, g) }, fields...)
	}
	for _, bad := range badNames() {
		try(lease.Grant{Name: bad, Owner: "a", Token: 1}, "name")
		try(lease.Grant{Name: e.name("x"), Owner: bad, Token: 1}, "owner")
	}
	for _, bad := range badTokens() {
		try(lease.Grant{Name: e.name("x"), Owner: "a", Token: bad}, "token")
	}
	try(lease.Grant{}, "name", "owner", "token")
}

func invalidRenew(e *env) {
	g := e.acquire(e.store(0), e.name("x"), "a", e.long)
	renew := func(g lease.Grant, ttl time.Duration) func(ctx context.Context) error {
		return func(ctx context.Context) error {
			_, err := e.store(0).Renew(ctx, g, ttl)
			return err
		}
	}
	e.badGrants(func(ctx context.Context, g lease.Grant) error { return renew(g, e.long)(ctx) })
	for _, bad := range e.badTTLs() {
		e.refusesInput(fmt.Sprintf("ttl %v", bad), renew(g.Grant, bad), "ttl")
		e.refusesInput(fmt.Sprintf("zero grant, ttl %v", bad), renew(lease.Grant{}, bad), "name", "owner", "token", "ttl")
	}
	e.renew(e.store(0), g.Grant, e.long)
}

func invalidRelease(e *env) {
	g := e.acquire(e.store(0), e.name("x"), "a", e.long)
	e.badGrants(e.store(0).Release)
	e.refused(e.store(0), g)
}

func invalidPut(e *env) {
	d := e.store(0).(lease.DataStore)
	put := func(g lease.Grant, length int) func(ctx context.Context) error {
		return func(ctx context.Context) error { return d.Put(ctx, g, make([]byte, length)) }
	}
	e.badGrants(func(ctx context.Context, g lease.Grant) error { return put(g, 1)(ctx) })
	g := e.acquire(e.store(0), e.name("x"), "a", e.long)
	for _, n := range []int{lease.MaxDataLen + 1, 1 << 20} {
		e.refusesInput(fmt.Sprintf("%d bytes of data", n), put(g.Grant, n), "data")
	}
	e.refusesInput("zero grant and too much data", put(lease.Grant{}, lease.MaxDataLen+1), "name", "owner", "token", "data")
	e.refused(e.store(0), g)
}

func invalidRead(e *env) {
	i := e.store(0).(lease.Inspector)
	for _, bad := range badNames() {
		e.refusesInput("get "+shown(bad), func(ctx context.Context) error {
			_, err := i.Get(ctx, bad)
			return err
		}, "name")
	}
	for _, bad := range badPrefixes() {
		e.refusesInput("list "+shown(bad), func(ctx context.Context) error {
			_, err := i.List(ctx, bad)
			return err
		}, "prefix")
	}
}

func invalidWatch(e *env) {
	for _, bad := range badPrefixes() {
		e.refusesInput("watch "+shown(bad), func(ctx context.Context) error {
			return e.store(0).(lease.Watcher).Watch(ctx, bad, 0, func(lease.Event) error { return nil })
		}, "prefix")
	}
}
