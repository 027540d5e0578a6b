package client_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/raftlease/raftlease/client"
	"github.com/raftlease/raftlease/lease"
)

// verb is a call on a client, with what the member knows it as.
type verb struct {
	name  string
	reads bool
	call  func(ctx context.Context, c *client.Client) error
}

var someGrant = lease.Grant{Name: "x", Owner: "a", Token: 1}

var verbs = []verb{
	{"acquire", false, func(ctx context.Context, c *client.Client) error {
		_, err := c.Acquire(ctx, "x", "a", time.Minute)
		return err
	}},
	{"renew", false, func(ctx context.Context, c *client.Client) error {
		_, err := c.Renew(ctx, someGrant, time.Minute)
		return err
	}},
	{"release", false, func(ctx context.Context, c *client.Client) error { return c.Release(ctx, someGrant) }},
	{"put", false, func(ctx context.Context, c *client.Client) error { return c.Put(ctx, someGrant, []byte("v")) }},
	{"get", true, func(ctx context.Context, c *client.Client) error { _, err := c.Get(ctx, "x"); return err }},
	{"get stale", true, func(ctx context.Context, c *client.Client) error { _, _, err := c.GetStale(ctx, "x"); return err }},
	{"list", true, func(ctx context.Context, c *client.Client) error { _, err := c.List(ctx, ""); return err }},
	{"list stale", true, func(ctx context.Context, c *client.Client) error { _, _, err := c.ListStale(ctx, ""); return err }},
}

var (
	notDone   = sent(lease.ErrUnavailable)
	stopping  = sent(lease.ErrClosed)
	unknown   = sent(lease.ErrUnknownOutcome)
	noDetail  = connect.NewError(connect.CodeUnavailable, errors.New("a proxy says no"))
	errEnough = errors.New("the test has seen enough")
)

// heldStore makes someGrant live.
func heldStore(t testing.TB) func(*member) {
	return func(m *member) {
		if g, err := m.store.Acquire(bg, "x", "a", time.Minute); err != nil || g.Token != someGrant.Token {
			t.Fatalf("acquire: %+v, %v", g, err)
		}
	}
}

// scripted answers the calls of a verb with these errors, one after the other,
// and then carries them out. It counts them.
func scripted(verb string, calls *atomic.Int64, answers ...error) func(*member) {
	return func(m *member) {
		m.intercept = func(_ context.Context, got string) error {
			if got != verb {
				return nil
			}
			if n := int(calls.Add(1)); n <= len(answers) {
				return answers[n-1]
			}
			return nil
		}
	}
}

func TestClient_RepeatsWhatGotNoAnswer(t *testing.T) {
	for _, v := range verbs {
		t.Run(v.name, func(t *testing.T) {
			var calls atomic.Int64
			m := start(t, newStore(t), heldStore(t), scripted(v.name, &calls, notDone, stopping, unknown, noDetail, notDone))
			if err := v.call(within(t), dial(t, client.Config{}, m.addr)); err != nil {
				t.Errorf("got %v, want the sixth answer", err)
			}
			if n := calls.Load(); n != 6 {
				t.Errorf("%d attempts, want 6", n)
			}
		})
	}
}

func TestClient_RefusalsAreFinal(t *testing.T) {
	for _, v := range verbs {
		for _, refusal := range []error{
			&lease.HeldError{Name: "x", Owner: "b", Token: 9, Remaining: time.Second},
			&lease.LostError{Name: "x", Owner: "a", Token: 1, Reason: lease.ReasonTaken, NewOwner: "b", NewToken: 9},
			&lease.InvalidError{Faults: []lease.Fault{{Field: "ttl", Value: "1m", Allowed: "1s to 2s"}}},
			lease.ErrNotFound,
		} {
			t.Run(fmt.Sprintf("%s, %T", v.name, refusal), func(t *testing.T) {
				var calls atomic.Int64
				m := start(t, newStore(t), scripted(v.name, &calls, unknown, sent(refusal)))
				err := v.call(within(t), dial(t, client.Config{}, m.addr))
				if n := calls.Load(); n != 2 {
					t.Errorf("%d attempts, want 2", n)
				}
				if !strings.HasSuffix(err.Error(), refusal.Error()) {
					t.Errorf("got %v, want %v", err, refusal)
				}
				for _, kind := range []error{lease.ErrHeld, lease.ErrLost, lease.ErrInvalid, lease.ErrNotFound, lease.ErrUnavailable, lease.ErrUnknownOutcome} {
					if got, want := errors.Is(err, kind), errors.Is(refusal, kind); got != want {
						t.Errorf("%v is %q: %v, want %v", err, kind, got, want)
					}
				}
			})
		}
	}
}

// G6: not done and perhaps done, by everything that happened before ctx ended.
// It ends while the client connects to another member, where nothing is open.
func TestClient_SaysWhetherItMayHaveBeenDone(t *testing.T) {
	for _, c := range []struct {
		name    string
		answers []error
		unknown bool
	}{
		{"nothing but unavailable", []error{notDone, stopping, notDone}, false},
		{"unknown at last", []error{notDone, unknown}, true},
		{"unknown at first", []error{unknown, notDone, notDone}, true},
		{"an error without a detail", []error{noDetail, notDone}, true},
	} {
		for _, v := range verbs {
			t.Run(c.name+", "+v.name, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(within(t))
				var calls atomic.Int64
				m := start(t, newStore(t), scripted(v.name, &calls, c.answers...))
				other := dead(t)
				cl := dial(t, client.Config{Dial: func(ctx context.Context, addr string) (net.Conn, error) {
					if addr == other && int(calls.Load()) == len(c.answers) {
						cancel(errEnough)
					}
					return (&net.Dialer{}).DialContext(ctx, "tcp", addr)
				}}, m.addr, other)
				want := lease.ErrUnavailable
				if c.unknown && !v.reads {
					want = lease.ErrUnknownOutcome
				}
				endedAs(t, v.call(ctx, cl), want)
			})
		}
	}
}

func TestClient_AttemptUnderWayAtTheEndIsUnknown(t *testing.T) {
	for _, v := range verbs {
		t.Run(v.name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(within(t))
			m := start(t, newStore(t), func(m *member) {
				m.intercept = func(ctx context.Context, _ string) error {
					cancel(errEnough)
					<-ctx.Done()
					return ctx.Err()
				}
			})
			want := lease.ErrUnavailable
			if !v.reads {
				want = lease.ErrUnknownOutcome
			}
			endedAs(t, v.call(ctx, dial(t, client.Config{}, m.addr)), want)
		})
	}
}

// endedAs checks the error of a call whose ctx ended with errEnough.
func endedAs(t *testing.T, err, want error) {
	t.Helper()
	for _, kind := range []error{lease.ErrUnavailable, lease.ErrUnknownOutcome} {
		if errors.Is(err, kind) != (kind == want) {
			t.Errorf("got %v, want %v alone", err, want)
		}
	}
	if !errors.Is(err, errEnough) || !strings.Contains(err.Error(), "last attempt: member") {
		t.Errorf("got %v, want the cause and the last attempt", err)
	}
}

// G6: a member that answers by the deadline it was told is heard.
func TestClient_MemberIsToldAnEarlierDeadline(t *testing.T) {
	m := start(t, newStore(t), func(m *member) {
		m.intercept = func(ctx context.Context, _ string) error {
			<-ctx.Done()
			return notDone
		}
	})
	c := dial(t, client.Config{}, m.addr)
	for try := 0; ; try++ {
		ctx, cancel := context.WithTimeout(bg, time.Second)
		_, err := c.Acquire(ctx, "x", "a", time.Minute)
		cancel()
		if errors.Is(err, lease.ErrUnavailable) && errors.Is(err, context.DeadlineExceeded) {
			return
		}
		if try == 5 { // a machine that stops can be late
			t.Fatalf("got %v, want ErrUnavailable", err)
		}
	}
}

func TestClient_EndedContextSendsNothing(t *testing.T) {
	var calls atomic.Int64
	m := start(t, newStore(t), func(m *member) {
		m.intercept = func(context.Context, string) error { calls.Add(1); return nil }
	})
	c := dial(t, client.Config{}, m.addr)
	ctx, cancel := context.WithCancelCause(bg)
	cancel(errEnough)
	for _, v := range verbs {
		err := v.call(ctx, c)
		if !errors.Is(err, lease.ErrUnavailable) || !errors.Is(err, errEnough) || errors.Is(err, lease.ErrUnknownOutcome) {
			t.Errorf("%s: got %v, want ErrUnavailable and the cause", v.name, err)
		}
	}
	if n := calls.Load(); n != 0 {
		t.Errorf("%d calls arrived, want none", n)
	}
}

// G8: nothing leaves that cannot succeed, and all faults are named.
func TestClient_ChecksArgumentsFirst(t *testing.T) {
	c := dial(t, client.Config{}, dead(t))
	_, acquire := c.Acquire(bg, "", " a", 0)
	_, wait := c.AcquireWait(bg, "", " a", 0)
	_, renew := c.Renew(bg, lease.Grant{Name: "x"}, 0)
	_, get := c.Get(bg, "")
	_, list := c.List(bg, "\xff")
	_, status := c.Status(bg, "nowhere")
	_, transfer := c.Transfer(bg, strings.Repeat("x", 256))
	_, _, broken := c.Break(bg, "")
	for what, got := range map[string]struct {
		err    error
		faults int
	}{
		"acquire": {acquire, 3}, "wait": {wait, 3}, "renew": {renew, 3}, "get": {get, 1}, "list": {list, 1},
		"release": {c.Release(bg, lease.Grant{}), 3}, "put": {c.Put(bg, lease.Grant{}, make([]byte, lease.MaxDataLen+1)), 4},
		"watch":  {c.Watch(bg, "\xff", 0, nil), 1},
		"status": {status, 1}, "transfer": {transfer, 1}, "break": {broken, 1},
		"add": {c.AddMember(bg, "", ":1"), 2}, "remove": {c.RemoveMember(bg, ""), 1}, "promote": {c.Promote(bg, ""), 1},
	} {
		var invalid *lease.InvalidError
		if !errors.As(got.err, &invalid) || len(invalid.Faults) != got.faults {
			t.Errorf("%s: %v, want %d faults", what, got.err, got.faults)
		}
	}
}

// No other member would make it smaller.
func TestClient_ListThatIsTooLargeIsNotRepeated(t *testing.T) {
	var calls atomic.Int64
	m := start(t, newStore(t), scripted("list", &calls, connect.NewError(connect.CodeResourceExhausted, errors.New("67108865 bytes"))))
	_, err := dial(t, client.Config{}, m.addr).List(bg, "")
	if n := calls.Load(); n != 1 || !errors.Is(err, lease.ErrUnavailable) || !strings.Contains(err.Error(), "67108865 bytes") {
		t.Errorf("got %v after %d attempts, want ErrUnavailable with the size after 1", err, n)
	}
}
