package lease

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// faultsOf returns what an error finds wrong, as "field: allowed".
func faultsOf(t testing.TB, err error) []string {
	t.Helper()
	if err == nil {
		return nil
	}
	var bad *InvalidError
	if !errors.As(err, &bad) || !errors.Is(err, ErrInvalid) || len(bad.Faults) == 0 {
		t.Fatalf("%v (%T), want an *InvalidError with faults (G8)", err, err)
	}
	var out []string
	for _, f := range bad.Faults {
		if f.Value == "" {
			t.Errorf("%s: no value", f.Field)
		}
		out = append(out, f.Field+": "+f.Allowed)
	}
	return out
}

func wants(t testing.TB, what string, err error, want ...string) {
	t.Helper()
	if got := faultsOf(t, err); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s: faults %q, want %q (G8)", what, got, want)
	}
}

const (
	length  = "1 to 255 bytes"
	utf     = "valid UTF-8"
	control = "no control characters"
	space   = "no leading or trailing space"
)

func TestCheckName(t *testing.T) {
	for name, want := range map[string]string{
		"": length, strings.Repeat("n", 256): length, strings.Repeat("é", 128): length,
		"\xff": utf, "a\xc3": utf, "\xed\xa0\x80": utf, "\xc0\x80": utf,
		"\x00": control, "a\x00b": control, "a\nb": control, "tab\t": control, "\x7f": control, "a\u0085": control, "\u009f": control,
		" a": space, "a ": space, " ": space, "\u00a0a": space, "a\u3000": space, "\u2028a": space, "a\u2029": space, "\u205fa": space,

		"a": "", "a b": "", "a  b": "", strings.Repeat("n", 255): "", strings.Repeat("é", 127): "", "日本語": "", "\U0001f512": "",
		"a\u00a0b": "", "\ufeffa": "", "a\u200b": "", "\ufffd": "", "'; --": "", "%": "", "/": "", "cafe\u0301": "",
	} {
		var faults []string
		if want != "" {
			faults = []string{"name: " + want}
		}
		wants(t, fmt.Sprintf("name %.20q", name), CheckName(name), faults...)
	}
}

// A valid name is what a store can keep, compare and show; checking never
// panics and does not depend on the field.
func TestCheckName_AnyString(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := string(rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "bytes"))
		if rapid.Bool().Draw(t, "text") {
			s = rapid.String().Draw(t, "string")
		}
		ok := CheckName(s) == nil
		clean := len(s) > 0 && len(s) <= 255 && utf8.ValidString(s) && strings.TrimSpace(s) == s &&
			!strings.ContainsFunc(s, func(r rune) bool { return r < 0x20 || r >= 0x7f && r < 0xa0 })
		if ok != clean {
			t.Errorf("%q: valid %v, want %v", s, ok, clean)
		}
		if owner := CheckAcquire("x", s, time.Second, Limits{}) == nil; owner != ok {
			t.Errorf("%q: valid as a name %v, as an owner %v", s, ok, owner)
		}
	})
}

func TestCheckPrefix(t *testing.T) {
	const allowed = "prefix: at most 255 bytes of valid UTF-8"
	for _, good := range []string{"", "a", "a ", " ", strings.Repeat("n", 255), "a\x00"} {
		wants(t, fmt.Sprintf("%q", good), CheckPrefix(good))
	}
	for _, bad := range []string{strings.Repeat("n", 256), "\xff", "é"[:1]} {
		wants(t, fmt.Sprintf("%q", bad), CheckPrefix(bad), allowed)
	}
}

func TestCheckTTL(t *testing.T) {
	narrow := Limits{MinTTL: 50 * time.Millisecond, MaxTTL: time.Minute}
	for _, c := range []struct {
		ttl    time.Duration
		limits Limits
		want   string
	}{
		{time.Second, Limits{}, ""},
		{24 * time.Hour, Limits{}, ""},
		{1500 * time.Millisecond, Limits{}, ""},
		{time.Second - 1, Limits{}, "1s to 24h0m0s"},
		{24*time.Hour + 1, Limits{}, "1s to 24h0m0s"},
		{0, Limits{}, "1s to 24h0m0s"},
		{-time.Second, Limits{}, "1s to 24h0m0s"},
		{1, Limits{}, "1s to 24h0m0s"},
		{math.MaxInt64, Limits{}, "1s to 24h0m0s"},
		{math.MinInt64, Limits{}, "1s to 24h0m0s"},
		{time.Second + 1, Limits{}, "whole milliseconds"},
		{time.Second + 500*time.Microsecond, Limits{}, "whole milliseconds"},
		{50 * time.Millisecond, narrow, ""},
		{time.Minute, narrow, ""},
		{49 * time.Millisecond, narrow, "50ms to 1m0s"},
		{time.Minute + time.Millisecond, narrow, "50ms to 1m0s"},
		{51500 * time.Microsecond, narrow, "whole milliseconds"},
		{time.Hour, Limits{MinTTL: 50 * time.Millisecond}, ""},
		{time.Hour + time.Millisecond, Limits{MaxTTL: time.Hour}, "1s to 1h0m0s"},
	} {
		var faults []string
		if c.want != "" {
			faults = []string{"ttl: " + c.want}
		}
		wants(t, fmt.Sprintf("ttl %v", c.ttl), CheckAcquire("x", "a", c.ttl, c.limits), faults...)
	}
}

func TestCheck_ReportsAllFaultsAtOnce(t *testing.T) {
	const (
		name  = "name: " + length
		owner = "owner: " + length
		ttl   = "ttl: 1s to 24h0m0s"
		token = "token: 1 to 2^53-1, as an acquire returned it"
		data  = "data: at most 65536 bytes"
	)
	tooMuch := make([]byte, MaxDataLen+1)
	wants(t, "acquire", CheckAcquire("", "", 0, Limits{}), name, owner, ttl)
	wants(t, "renew", CheckRenew(Grant{}, 0, Limits{}), name, owner, token, ttl)
	wants(t, "grant", CheckGrant(Grant{}), name, owner, token)
	wants(t, "put", CheckPut(Grant{}, tooMuch), name, owner, token, data)

	good := Grant{Name: "x", Owner: "a", Token: 1}
	wants(t, "acquire", CheckAcquire("x", "a", time.Second, Limits{}))
	wants(t, "renew", CheckRenew(good, time.Second, Limits{}))
	wants(t, "grant", CheckGrant(good))
	wants(t, "put", CheckPut(good, tooMuch[1:]))
	wants(t, "put nothing", CheckPut(good, nil))
	for _, most := range []uint64{1<<53 - 1, 1} {
		wants(t, fmt.Sprint("token ", most), CheckGrant(Grant{Name: "x", Owner: "a", Token: most}))
	}
	for _, bad := range []uint64{0, 1 << 53, 1 << 63, math.MaxUint64} {
		wants(t, fmt.Sprint("token ", bad), CheckGrant(Grant{Name: "x", Owner: "a", Token: bad}), token)
	}
}

func TestFaults_ShowTheValue(t *testing.T) {
	var f Faults
	if f.Err() != nil {
		t.Errorf("no faults: %v, want nil", f.Err())
	}
	f.Add("ttl", 1500*time.Microsecond, "whole milliseconds")
	f.Add("name", "a\x00\xff", "valid UTF-8")
	f.Add("name", strings.Repeat("n", 1<<20), "1 to 255 bytes")
	f.Data(make([]byte, MaxDataLen+1))
	for i, want := range []string{`1.5ms`, `"a\x00\xff"`, `"` + strings.Repeat("n", 64) + `"… (1048576 bytes)`, `65537 bytes`} {
		if got := f.Err().(*InvalidError).Faults[i].Value; got != want {
			t.Errorf("value %s, want %s", got, want)
		}
	}
}

func TestLimits_WithDefaults(t *testing.T) {
	if got, want := (Limits{}).WithDefaults(), (Limits{time.Second, 24 * time.Hour}); got != want {
		t.Errorf("%v, want %v", got, want)
	}
	own := Limits{time.Millisecond, time.Minute}
	if got := own.WithDefaults(); got != own {
		t.Errorf("%v, want %v", got, own)
	}
}
