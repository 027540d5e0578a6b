package client_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/raftlease/raftlease/client"
	"github.com/raftlease/raftlease/internal/wire"
	"github.com/raftlease/raftlease/lease"
	pb "github.com/raftlease/raftlease/transport/rpc/raftleasev1"
)

// recorded is a member that reports changes of the past, and whose streams break
// after some messages each.
type recorded struct {
	leases
	events []lease.Event // what it knows; index 3 is its state at first

	mu    sync.Mutex
	cuts  []int // after how many messages the streams break; then they go on
	after []uint64
}

func (r *recorded) Watch(ctx context.Context, req *pb.WatchRequest, stream *connect.ServerStream[pb.WatchResponse]) error {
	r.mu.Lock()
	r.after = append(r.after, req.After)
	cut, how := -1, error(noDetail)
	if len(r.cuts) > 0 {
		cut, r.cuts = r.cuts[0], r.cuts[1:]
	}
	if len(r.after)%2 == 0 {
		how = nil // as if it stopped in good order
	}
	r.mu.Unlock()
	for i, e := range slices.DeleteFunc(slices.Clone(r.events), func(e lease.Event) bool { return e.Index <= req.After }) {
		if i == cut {
			return how
		}
		if err := stream.Send(wire.WatchResponse(e)); err != nil {
			return err
		}
	}
	<-ctx.Done()
	return ctx.Err()
}

func event(index uint64, kind lease.EventKind, name string) lease.Event {
	return lease.Event{Index: index, Kind: kind, Record: lease.Record{Name: name}}
}

func TestClient_WatchResumesWithoutLossOrRepetition(t *testing.T) {
	events := []lease.Event{
		event(3, lease.EventState, "a"), event(3, lease.EventState, "b"), event(3, lease.EventSynced, ""),
		event(4, lease.EventGranted, "c"), event(4, lease.EventGranted, "d"), event(4, lease.EventExtended, "c"),
		event(4, lease.EventExtended, "c"), event(7, lease.EventReleased, "c"), event(8, lease.EventExpired, "d"),
		event(8, lease.EventExpired, "e"), event(9, lease.EventGranted, "end"),
	}
	for name, c := range map[string]struct {
		cuts  []int
		after []uint64 // where the streams begin
	}{
		"never":                           {nil, []uint64{0}},
		"within the state":                {[]int{0, 1, 2}, []uint64{0, 0, 0, 0}},
		"after the state":                 {[]int{3}, []uint64{0, 3}},
		"within an index":                 {[]int{5}, []uint64{0, 3}},
		"within an index again and again": {[]int{4, 1, 2, 3}, []uint64{0, 3, 3, 3, 3}},
		"after the last of an index":      {[]int{7}, []uint64{0, 3}},
		"within a later index":            {[]int{9, 1, 2}, []uint64{0, 7, 7, 7}},
	} {
		t.Run(name, func(t *testing.T) {
			r := &recorded{events: events, cuts: slices.Clone(c.cuts)}
			m := start(t, newStore(t), func(m *member) { m.lease = r })
			var got []lease.Event
			err := dial(t, client.Config{}, m.addr, dead(t)).Watch(within(t), "", 0, func(e lease.Event) error {
				got = append(got, e)
				if e.Record.Name == "end" {
					return errEnough
				}
				return nil
			})
			if err != errEnough {
				t.Fatalf("watch: %v", err)
			}
			if fmt.Sprint(got) != fmt.Sprint(events) {
				t.Errorf("got\n%v\nwant\n%v", got, events)
			}
			if !slices.Equal(r.after, c.after) {
				t.Errorf("streams began after %v, want %v", r.after, c.after)
			}
		})
	}
}

func TestClient_WatchGoesOnWhenItsMemberDies(t *testing.T) {
	store := newStore(t)
	a, b := start(t, store), start(t, store)
	c := dial(t, client.Config{}, a.addr, b.addr)
	var names []string
	err := c.Watch(within(t), "", 0, func(e lease.Event) error {
		if e.Kind == lease.EventGranted {
			names = append(names, e.Record.Name)
		}
		if len(names) == 20 {
			return errEnough
		}
		if len(names) == 10 {
			a.stop(t)
		}
		_, err := store.Acquire(bg, fmt.Sprint(len(names)), "a", time.Minute)
		return err
	})
	if err != errEnough {
		t.Fatalf("watch: %v", err)
	}
	for i, name := range names {
		if name != fmt.Sprint(i) {
			t.Fatalf("granted %q, want each of 20 once, in order", names)
		}
	}
}

func TestClient_WatchEndsWithARefusal(t *testing.T) {
	m := start(t, newStore(t), func(m *member) {
		m.intercept = func(context.Context, string) error {
			return sent(&lease.InvalidError{Faults: []lease.Fault{{Field: "prefix"}}})
		}
	})
	err := dial(t, client.Config{}, m.addr).Watch(within(t), "", 0, nil)
	if !errors.Is(err, lease.ErrInvalid) {
		t.Errorf("got %v, want the refusal", err)
	}
}

func TestClient_WatchWithoutAMemberEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithTimeoutCause(bg, slow, errEnough)
	defer cancel()
	endedAs(t, dial(t, client.Config{}, dead(t), dead(t)).Watch(ctx, "", 0, nil), lease.ErrUnavailable)
}
