package wire

import (
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/raftlease/raftlease/lease"
	pb "github.com/raftlease/raftlease/transport/rpc/raftleasev1"
)

// Record turns a lease of the wire into a record. The data is shared.
func Record(l *pb.Lease) lease.Record {
	return lease.Record{
		Name: l.GetName(), Owner: l.GetOwner(), Token: l.GetToken(), TTL: l.GetTtl().AsDuration(),
		Remaining: l.GetRemaining().AsDuration(), Data: l.GetData(), DataToken: l.GetDataToken(), Index: l.GetIndex(),
	}
}

// Records is Record for many.
func Records(ls []*pb.Lease) []lease.Record {
	rs := make([]lease.Record, len(ls))
	for i, l := range ls {
		rs[i] = Record(l)
	}
	return rs
}

// Lease turns a record into a lease of the wire. The data is shared.
func Lease(r lease.Record) *pb.Lease {
	return &pb.Lease{
		Name: r.Name, Owner: r.Owner, Token: r.Token, Ttl: optional(r.TTL), Remaining: optional(r.Remaining),
		Data: r.Data, DataToken: r.DataToken, Index: r.Index,
	}
}

func optional(d time.Duration) *durationpb.Duration {
	if d == 0 {
		return nil
	}
	return durationpb.New(d)
}

var kinds = map[lease.EventKind]pb.EventKind{
	lease.EventState:    pb.EventKind_EVENT_KIND_STATE,
	lease.EventSynced:   pb.EventKind_EVENT_KIND_SYNCED,
	lease.EventGranted:  pb.EventKind_EVENT_KIND_GRANTED,
	lease.EventExtended: pb.EventKind_EVENT_KIND_EXTENDED,
	lease.EventReleased: pb.EventKind_EVENT_KIND_RELEASED,
	lease.EventExpired:  pb.EventKind_EVENT_KIND_EXPIRED,
	lease.EventBroken:   pb.EventKind_EVENT_KIND_BROKEN,
	lease.EventData:     pb.EventKind_EVENT_KIND_DATA,
}

// WatchResponse turns an event into a message.
func WatchResponse(e lease.Event) *pb.WatchResponse {
	return &pb.WatchResponse{Index: e.Index, Kind: kinds[e.Kind], Lease: Lease(e.Record)}
}

// Event turns a message into an event; false when a later version sent a kind
// that this one does not know.
func Event(m *pb.WatchResponse) (lease.Event, bool) {
	for kind, k := range kinds {
		if k == m.Kind {
			return lease.Event{Index: m.Index, Kind: kind, Record: Record(m.Lease)}, true
		}
	}
	return lease.Event{}, false
}
