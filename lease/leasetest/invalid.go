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

// invalid checks that err names exactly these fields, all of them at once.
func (e *env) invalid(what string, err error, fields ...string) {
	e.Helper()
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
	ctx, cancel := context.WithTimeout(context.Background(), e.suite.Patience)
	defer cancel()
	try := func(name, owner string, ttl time.Duration, fields ...string) {
		e.Helper()
		g, err := f(ctx, name, owner, ttl)
		what := fmt.Sprintf("name %s, owner %s, ttl %v", shown(name), shown(owner), ttl)
		e.invalid(what, err, fields...)
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
	ctx, cancel := context.WithTimeout(context.Background(), e.suite.Patience)
	defer cancel()
	try := func(g lease.Grant, fields ...string) {
		e.Helper()
		e.invalid(fmt.Sprintf("name %s, owner %s, token %d", shown(g.Name), shown(g.Owner), g.Token), f(ctx, g), fields...)
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
	e.badGrants(func(ctx context.Context, g lease.Grant) error {
		_, err := e.store(0).Renew(ctx, g, e.long)
		return err
	})
	for _, bad := range e.badTTLs() {
		_, err := e.store(0).Renew(context.Background(), g.Grant, bad)
		e.invalid(fmt.Sprintf("ttl %v", bad), err, "ttl")
		_, err = e.store(0).Renew(context.Background(), lease.Grant{}, bad)
		e.invalid(fmt.Sprintf("zero grant, ttl %v", bad), err, "name", "owner", "token", "ttl")
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
	e.badGrants(func(ctx context.Context, g lease.Grant) error { return d.Put(ctx, g, []byte("x")) })

	g := e.acquire(e.store(0), e.name("x"), "a", e.long)
	for _, n := range []int{lease.MaxDataLen + 1, 1 << 20} {
		e.invalid(fmt.Sprintf("%d bytes of data", n), d.Put(context.Background(), g.Grant, make([]byte, n)), "data")
	}
	e.invalid("zero grant and too much data", d.Put(context.Background(), lease.Grant{}, make([]byte, lease.MaxDataLen+1)),
		"name", "owner", "token", "data")
	e.refused(e.store(0), g)
}

func invalidRead(e *env) {
	i := e.store(0).(lease.Inspector)
	for _, bad := range badNames() {
		_, err := i.Get(context.Background(), bad)
		e.invalid("get "+shown(bad), err, "name")
	}
	for _, bad := range badPrefixes() {
		_, err := i.List(context.Background(), bad)
		e.invalid("list "+shown(bad), err, "prefix")
	}
}

func invalidWatch(e *env) {
	for _, bad := range badPrefixes() {
		err := e.store(0).(lease.Watcher).Watch(context.Background(), bad, 0, func(lease.Event) error { return nil })
		e.invalid("watch "+shown(bad), err, "prefix")
	}
}
