package lease

import "context"

// EventKind says what happened to a lease.
type EventKind string

// The kinds of events a Watcher reports. Every ending is reported only once it
// is committed, so an event never announces what could still be undone.
const (
	// EventState opens a watch, and a watch that fell too far behind: one
	// event per live record. EventSynced closes that group.
	EventState  EventKind = "state"
	EventSynced EventKind = "synced"

	EventGranted  EventKind = "granted"
	EventExtended EventKind = "extended" // only extensions that the store recorded
	EventReleased EventKind = "released"
	EventExpired  EventKind = "expired"
	EventBroken   EventKind = "broken"
	EventData     EventKind = "data"
)

// Event is one change of one lease.
type Event struct {
	Index  uint64 // position of the change; rises, several events may share one
	Kind   EventKind
	Record Record // after the change; for an ending: the grant that ended
}

// Watcher is a Store that reports changes.
type Watcher interface {
	// Watch calls fn for every change of the names that begin with prefix, in
	// order, from the first change after index on, until ctx ends or fn
	// returns an error, which it returns. With after 0, or when the store no
	// longer has the changes after that index, it first reports the present
	// state (EventState …, EventSynced), with everything acknowledged before
	// the call in it. To resume, pass the Index of the last
	// event whose successors have a larger Index.
	Watch(ctx context.Context, prefix string, after uint64, fn func(Event) error) error
}
