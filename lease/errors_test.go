package lease

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"
)

var sentinels = []error{ErrHeld, ErrLost, ErrNotFound, ErrInvalid, ErrUnavailable, ErrUnknownOutcome, ErrClosed}

// G6: each answer is one kind of failure and no other.
func TestErrors_AreOfOneKind(t *testing.T) {
	for _, c := range []struct {
		err  error
		kind error
	}{
		{&HeldError{}, ErrHeld},
		{&LostError{}, ErrLost},
		{&InvalidError{}, ErrInvalid},
		{ErrHeld, ErrHeld}, {ErrLost, ErrLost}, {ErrNotFound, ErrNotFound}, {ErrInvalid, ErrInvalid},
		{ErrUnavailable, ErrUnavailable}, {ErrUnknownOutcome, ErrUnknownOutcome}, {ErrClosed, ErrClosed},
	} {
		wrapped := fmt.Errorf("renew lease %q: %w", "x", c.err)
		for _, kind := range sentinels {
			if got, want := errors.Is(wrapped, kind), kind == c.kind; got != want {
				t.Errorf("%T %v is %q: %v, want %v", c.err, c.err, kind, got, want)
			}
		}
	}
}

func TestErrors_CarryWhatACallerActsOn(t *testing.T) {
	held := &HeldError{Name: "x", Owner: "b", Token: 9, Remaining: 1500*time.Millisecond + 400*time.Microsecond}
	lost := &LostError{Name: "x", Owner: "a", Token: 7, Reason: ReasonTaken, NewOwner: "b", NewToken: 9}
	expired := &LostError{Name: "x", Owner: "a", Token: 7, Reason: ReasonExpired}
	invalid := &InvalidError{Faults: []Fault{
		{Field: "name", Value: `""`, Allowed: "1 to 255 bytes"}, {Field: "ttl", Value: "0s", Allowed: "1s to 24h0m0s"},
	}}
	for err, want := range map[error]string{
		held:    `lease "x" is held by "b" with token 9 for another 1.5s`,
		lost:    `lease "x" of owner "a" with token 7 is lost: taken, now held by "b" with token 9`,
		expired: `lease "x" of owner "a" with token 7 is lost: expired`,
		invalid: `invalid argument: name is "", want 1 to 255 bytes; ttl is 0s, want 1s to 24h0m0s`,
	} {
		if err.Error() != want {
			t.Errorf("%s\nwant\n%s", err, want)
		}
	}
	wrapped := fmt.Errorf("outer: %w", errors.Join(held, lost, invalid))
	var h *HeldError
	var l *LostError
	var i *InvalidError
	if !errors.As(wrapped, &h) || h != held || !errors.As(wrapped, &l) || l != lost || !errors.As(wrapped, &i) || i != invalid {
		t.Errorf("errors.As found %v, %v, %v", h, l, i)
	}
}

func TestReasons_Differ(t *testing.T) {
	reasons := []Reason{ReasonExpired, ReasonTaken, ReasonReleased, ReasonBroken, ReasonGone, ReasonClosed}
	slices.Sort(reasons)
	if len(slices.Compact(reasons)) != 6 || slices.Contains(reasons, "") {
		t.Errorf("reasons %q, want six and none empty", reasons)
	}
}

func TestGuarantee_String(t *testing.T) {
	for g, want := range map[Guarantee]string{Eventual: "eventual", Exclusive: "exclusive", 0: "unknown", 3: "unknown"} {
		if got := g.String(); got != want {
			t.Errorf("guarantee %d is %q, want %q", int(g), got, want)
		}
	}
	if Eventual >= Exclusive {
		t.Error("an exclusive store guarantees less than an eventual one")
	}
}

func TestRecord_Held(t *testing.T) {
	if !(Record{Owner: "a"}).Held() || (Record{Data: []byte("x"), DataToken: 1}).Held() {
		t.Error("a record is held when it has an owner, whether or not it has data")
	}
}
