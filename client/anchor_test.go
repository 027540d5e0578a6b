package client_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/raftlease/raftlease/client"
	"github.com/raftlease/raftlease/lease"
	pb "github.com/raftlease/raftlease/transport/rpc/raftleasev1"
)

// slow is how long the members of these tests take. Nothing depends on it but
// how surely a wrong anchor is seen.
const slow = 100 * time.Millisecond

// took is when a member began and ended an attempt.
type took struct{ began, ended time.Time }

// slowly lets a member take its time, and refuse what refuse says, and notes
// when that was.
func slowly(attempts *[]took, refuse func(n int) error) func(*member) {
	var mu sync.Mutex
	return func(m *member) {
		m.intercept = func(_ context.Context, verb string) error {
			if verb != "acquire" && verb != "renew" && verb != "wait" {
				return nil
			}
			mu.Lock()
			defer mu.Unlock()
			began := time.Now()
			<-time.After(slow)
			err := refuse(len(*attempts))
			*attempts = append(*attempts, took{began, time.Now()})
			return err
		}
	}
}

// countsFrom checks that what remains of g was counted from a moment before
// latest and not before earliest.
func countsFrom(t *testing.T, g lease.Grant, earliest, latest time.Time) {
	t.Helper()
	const steady = 20 * time.Millisecond // a wall clock may be set during the test
	before := time.Now()
	remaining := g.Remaining()
	after := time.Now()
	if most := lease.Shorter(g.TTL) - before.Sub(latest); remaining > most {
		t.Errorf("%v remain of %v, want at most %v: the time of the answer is lease time (G4)", remaining, g.TTL, most)
	}
	if least := lease.Shorter(g.TTL) - after.Sub(earliest) - steady; remaining < least {
		t.Errorf("%v remain of %v, want at least %v: earlier attempts are not lease time", remaining, g.TTL, least)
	}
}

// G4, case 3: a late answer does not make a grant longer, and an attempt that
// failed does not make it shorter.
func TestClient_GrantCountsFromTheAttemptThatWon(t *testing.T) {
	var attempts []took
	firstFails := func(n int) error {
		if n%2 == 0 {
			return notDone
		}
		return nil
	}
	m := start(t, newStore(t), slowly(&attempts, firstFails))
	c := dial(t, client.Config{}, m.addr)
	g, err := c.Acquire(within(t), "x", "a", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	countsFrom(t, g, attempts[0].ended, attempts[1].began)
	g, err = c.Renew(within(t), g, 2*time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	countsFrom(t, g, attempts[2].ended, attempts[3].began)
	g, err = c.AcquireWait(within(t), "x", "a", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	countsFrom(t, g, attempts[4].ended, attempts[5].began)
}

// lying answers an acquire with a response of its own.
type lying struct {
	leases
	resp *pb.AcquireResponse
}

func (l *lying) Acquire(context.Context, *pb.AcquireRequest) (*pb.AcquireResponse, error) {
	return l.resp, nil
}

// G4: parked time is counted only as far as the request was under way at all.
func TestClient_ParkedForLongerThanTheCallIsNotBelieved(t *testing.T) {
	l := &lying{resp: &pb.AcquireResponse{Token: 1, Parked: durationpb.New(time.Hour)}}
	m := start(t, newStore(t), func(m *member) { m.lease = l })
	g, err := dial(t, client.Config{}, m.addr).Acquire(within(t), "x", "a", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if most := lease.Shorter(time.Minute); g.Remaining() > most {
		t.Errorf("%v remain, want at most %v", g.Remaining(), most)
	}
}

func TestClient_GrantedTTLIsTheAnswers(t *testing.T) {
	for name, c := range map[string]struct{ told, want time.Duration }{
		"when it is less":        {30 * time.Second, 30 * time.Second},
		"when it is not in it":   {0, time.Minute},
		"when it makes no sense": {-time.Second, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			l := &lying{resp: &pb.AcquireResponse{Token: 1, Ttl: durationpb.New(c.told)}}
			m := start(t, newStore(t), func(m *member) { m.lease = l })
			g, err := dial(t, client.Config{}, m.addr).Acquire(within(t), "x", "a", time.Minute)
			if err != nil || g.TTL != c.want || g.Remaining() > lease.Shorter(c.want) || g.Check() != nil {
				t.Errorf("got %+v, %v, with %v left, want ttl %v", g, err, g.Remaining(), c.want)
			}
		})
	}
}

// G2, G8: no grant without a token that can be compared.
func TestClient_AnswerWithoutATokenIsNone(t *testing.T) {
	for _, token := range []uint64{0, lease.MaxToken + 1} {
		store := newStore(t)
		l := &lying{resp: &pb.AcquireResponse{Token: token}}
		bad, good := start(t, store, func(m *member) { m.lease = l }), start(t, store)
		g, err := dial(t, client.Config{}, bad.addr, good.addr).Acquire(within(t), "x", "a", time.Minute)
		if err != nil || g.Token != 1 {
			t.Errorf("got token %d, %v, want that of the other member", g.Token, err)
		}
	}
}
