package lease

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Limits of names, tokens and lengths of time. They are the same in every
// store, so that a store can be swapped for another.
const (
	MaxNameLen  = 255         // bytes, for names and owners
	MaxToken    = 1<<53 - 1   // the largest integer a JSON number holds exactly (G2)
	DefaultMin  = time.Second // default shortest ttl
	DefaultMax  = 24 * time.Hour
	ttlUnit     = time.Millisecond
	shownLength = 64
)

// Limits are a store's bounds for ttl. The zero value means the defaults, 1 s
// to 24 h.
type Limits struct {
	MinTTL time.Duration // Defaults to DefaultMin. At least 1 ms.
	MaxTTL time.Duration // Defaults to DefaultMax. Not below MinTTL.
}

// WithDefaults returns l with zero fields replaced.
func (l Limits) WithDefaults() Limits {
	if l.MinTTL == 0 {
		l.MinTTL = DefaultMin
	}
	if l.MaxTTL == 0 {
		l.MaxTTL = DefaultMax
	}
	return l
}

// Faults collects what is wrong with a call's arguments. The zero value is
// ready to use. It is not safe for concurrent use.
type Faults struct{ list []Fault }

// Add records one fault. value is quoted and shortened when it is a string.
func (f *Faults) Add(field string, value any, allowed string) {
	shown := fmt.Sprint(value)
	if s, ok := value.(string); ok {
		if len(s) > shownLength {
			shown = fmt.Sprintf("%q… (%d bytes)", s[:shownLength], len(s))
		} else {
			shown = strconv.Quote(s)
		}
	}
	f.list = append(f.list, Fault{Field: field, Value: shown, Allowed: allowed})
}

// Err returns an *InvalidError with all faults, or nil when there are none.
func (f *Faults) Err() error {
	if len(f.list) == 0 {
		return nil
	}
	return &InvalidError{Faults: f.list}
}

// Name checks a lease name.
func (f *Faults) Name(name string) { f.identifier("name", name) }

// Owner checks an owner.
func (f *Faults) Owner(owner string) { f.identifier("owner", owner) }

// Prefix checks a prefix of lease names; unlike a name it may be empty.
func (f *Faults) Prefix(prefix string) {
	if len(prefix) > MaxNameLen || !utf8.ValidString(prefix) {
		f.Add("prefix", prefix, fmt.Sprintf("at most %d bytes of valid UTF-8", MaxNameLen))
	}
}

func (f *Faults) identifier(field, s string) {
	switch {
	case s == "" || len(s) > MaxNameLen:
		f.Add(field, s, fmt.Sprintf("1 to %d bytes", MaxNameLen))
	case !utf8.ValidString(s):
		f.Add(field, s, "valid UTF-8")
	case strings.ContainsFunc(s, unicode.IsControl):
		f.Add(field, s, "no control characters")
	case strings.TrimSpace(s) != s:
		f.Add(field, s, "no leading or trailing space")
	}
}

// TTL checks a time to live against l.
func (f *Faults) TTL(ttl time.Duration, l Limits) {
	l = l.WithDefaults()
	switch {
	case ttl < l.MinTTL || ttl > l.MaxTTL:
		f.Add("ttl", ttl, fmt.Sprintf("%v to %v", l.MinTTL, l.MaxTTL))
	case ttl%ttlUnit != 0:
		f.Add("ttl", ttl, "whole milliseconds")
	}
}

// Token checks a fencing token.
func (f *Faults) Token(token uint64) {
	if token == 0 || token > MaxToken {
		f.Add("token", token, "1 to 2^53-1, as an acquire returned it")
	}
}

// size is shown as a number of bytes.
type size int

func (n size) String() string { return fmt.Sprintf("%d bytes", int(n)) }

// Data checks a value for Put.
func (f *Faults) Data(data []byte) {
	if len(data) > MaxDataLen {
		f.Add("data", size(len(data)), fmt.Sprintf("at most %d bytes", MaxDataLen))
	}
}

// CheckAcquire checks the arguments of Acquire and AcquireWait.
func CheckAcquire(name, owner string, ttl time.Duration, l Limits) error {
	var f Faults
	f.Name(name)
	f.Owner(owner)
	f.TTL(ttl, l)
	return f.Err()
}

// CheckRenew checks the arguments of Renew.
func CheckRenew(g Grant, ttl time.Duration, l Limits) error {
	var f Faults
	f.grant(g)
	f.TTL(ttl, l)
	return f.Err()
}

// CheckGrant checks the identity of a grant, as Release needs it.
func CheckGrant(g Grant) error {
	var f Faults
	f.grant(g)
	return f.Err()
}

// CheckPut checks the arguments of Put.
func CheckPut(g Grant, data []byte) error {
	var f Faults
	f.grant(g)
	f.Data(data)
	return f.Err()
}

// CheckName checks a lease name alone.
func CheckName(name string) error {
	var f Faults
	f.Name(name)
	return f.Err()
}

// CheckPrefix checks a prefix of lease names.
func CheckPrefix(prefix string) error {
	var f Faults
	f.Prefix(prefix)
	return f.Err()
}

func (f *Faults) grant(g Grant) {
	f.Name(g.Name)
	f.Owner(g.Owner)
	f.Token(g.Token)
}
