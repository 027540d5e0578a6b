package wire_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/raftlease/raftlease/internal/wire"
	"github.com/raftlease/raftlease/lease"
	pb "github.com/raftlease/raftlease/transport/rpc/raftleasev1"
)

func overTheWire[M any, P interface {
	*M
	proto.Message
}](t *testing.T, m P) P {
	t.Helper()
	b, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	out := P(new(M))
	if err := proto.Unmarshal(b, out); err != nil {
		t.Fatal(err)
	}
	return out
}

// G6: denied, not done and unknown stay three different answers on their way.
func TestErr_IsTheErrorThatWasSent(t *testing.T) {
	for _, sent := range []error{
		&lease.HeldError{Name: "n", Owner: "o", Token: 7, Remaining: 3 * time.Second},
		&lease.LostError{Name: "n", Owner: "o", Token: 7, Reason: lease.ReasonTaken, NewOwner: "p", NewToken: 8},
		&lease.InvalidError{Faults: []lease.Fault{{Field: "ttl", Value: "0s", Allowed: "1s to 24h"}, {Field: "name", Value: `""`, Allowed: "1 to 255 bytes"}}},
		lease.ErrNotFound, lease.ErrUnavailable, lease.ErrUnknownOutcome, lease.ErrClosed,
	} {
		got := wire.Err(overTheWire(t, wire.Detail(fmt.Errorf("acquire: %w", sent))))
		if !reflect.DeepEqual(got, sent) {
			t.Errorf("got %#v, want %#v", got, sent)
		}
	}
}

func TestDetail_OfWhatIsNotDone(t *testing.T) {
	for _, c := range []struct {
		err  error
		want pb.ErrorCode
	}{
		{fmt.Errorf("get: %w", context.Canceled), pb.ErrorCode_ERROR_CODE_UNAVAILABLE},
		{fmt.Errorf("%w: %w", lease.ErrUnknownOutcome, context.DeadlineExceeded), pb.ErrorCode_ERROR_CODE_UNKNOWN_OUTCOME},
		{fmt.Errorf("%w: %w", lease.ErrUnavailable, context.DeadlineExceeded), pb.ErrorCode_ERROR_CODE_UNAVAILABLE},
		{errors.New("anything"), pb.ErrorCode_ERROR_CODE_UNKNOWN_OUTCOME},
	} {
		if got := wire.Detail(c.err).Code; got != c.want {
			t.Errorf("%v: got %v, want %v", c.err, got, c.want)
		}
	}
}

func TestErr_OfALaterVersionIsNoRefusal(t *testing.T) {
	if err := wire.Err(&pb.ErrorDetail{Code: 99}); !errors.Is(err, lease.ErrUnknownOutcome) {
		t.Errorf("got %v, want ErrUnknownOutcome", err)
	}
	if err := wire.Err(nil); err != nil {
		t.Errorf("got %v for no error", err)
	}
}

func TestEvent_IsTheEventThatWasSent(t *testing.T) {
	for _, kind := range []lease.EventKind{lease.EventState, lease.EventSynced, lease.EventGranted, lease.EventExtended,
		lease.EventReleased, lease.EventExpired, lease.EventBroken, lease.EventData} {
		sent := lease.Event{Index: 9, Kind: kind, Record: lease.Record{
			Name: "n", Owner: "o", Token: 3, TTL: time.Second, Remaining: time.Millisecond, Data: []byte("d"), DataToken: 2, Index: 8}}
		got, ok := wire.Event(overTheWire(t, wire.WatchResponse(sent)))
		if !ok || !reflect.DeepEqual(got, sent) {
			t.Errorf("got %+v, %v, want %+v", got, ok, sent)
		}
	}
	if e, ok := wire.Event(&pb.WatchResponse{Kind: 99}); ok {
		t.Errorf("an unknown kind became %+v", e)
	}
}

func TestRecords_KeepTheirOrder(t *testing.T) {
	sent := []lease.Record{{Name: "a", Owner: "o", Token: 1, TTL: time.Second}, {Name: "b", Data: []byte("x"), DataToken: 1}}
	var ls []*pb.Lease
	for _, r := range sent {
		ls = append(ls, overTheWire(t, wire.Lease(r)))
	}
	if got := wire.Records(ls); !reflect.DeepEqual(got, sent) {
		t.Errorf("got %+v, want %+v", got, sent)
	}
}
