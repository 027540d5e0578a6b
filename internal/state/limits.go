package state

import (
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Limits of what the state holds. They are part of the log format: builds that
// disagree about them would disagree about what was granted. So they are
// constants of this package, the same as or wider than what package lease
// allows, and no check depends on tables that change with Go or Unicode.
const (
	maxName  = 255       // bytes, for names, owners and the parts of a session
	maxData  = 64 << 10  // bytes
	maxToken = 1<<53 - 1 // G2
	minTTL   = time.Millisecond
	maxTTL   = 10 * 365 * 24 * time.Hour
)

// faults collects what is wrong with a command. nil means nothing.
type faults []string

func (f *faults) add(field, value, allowed string) {
	*f = append(*f, field+" is "+value+", want "+allowed)
}

func (f faults) why() string { return strings.Join(f, "; ") }

// identifier checks s for what a store can hold and compare for ever. Space
// characters other than U+0020 are left to the callers' checks: which ones
// there are depends on the version of Unicode.
func (f *faults) identifier(field, s string) {
	switch {
	case s == "":
		f.add(field, "empty", "1 to 255 bytes")
	case len(s) > maxName:
		f.add(field, "longer", "1 to 255 bytes")
	case !utf8.ValidString(s):
		f.add(field, strconv.QuoteToASCII(s), "valid UTF-8")
	case strings.ContainsFunc(s, isControl):
		f.add(field, strconv.QuoteToASCII(s), "no control characters")
	case s[0] == ' ' || s[len(s)-1] == ' ':
		f.add(field, strconv.QuoteToASCII(s), "no leading or trailing space")
	}
}

// isControl is unicode.IsControl: Unicode promises that this set never changes.
func isControl(r rune) bool { return r < 0x20 || r >= 0x7f && r < 0xa0 }

func (f *faults) ttl(d time.Duration) {
	switch {
	case d < minTTL || d > maxTTL:
		f.add("ttl", d.String(), "1 ms to 10 years")
	case d%time.Millisecond != 0:
		f.add("ttl", d.String(), "whole milliseconds")
	}
}

func (f *faults) token(t uint64) {
	if t == 0 || t > maxToken {
		f.add("token", strconv.FormatUint(t, 10), "1 to 2^53-1")
	}
}

func (f *faults) data(b []byte) {
	if len(b) > maxData {
		f.add("data", "longer", "at most 65536 bytes")
	}
}

func (f *faults) session(s Session) {
	f.identifier("session node", s.Node)
	f.identifier("session disk", s.Disk)
}
