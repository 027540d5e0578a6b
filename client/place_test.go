package client

import (
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/raftlease/raftlease/lease"
)

// history is what the members of a cluster report to a watch.
type history []lease.Event

func histories(t *rapid.T) history {
	var h history
	index := uint64(0)
	for n := rapid.IntRange(1, 30).Draw(t, "events"); len(h) < n; {
		index += rapid.Uint64Range(1, 3).Draw(t, "step")
		for range rapid.IntRange(1, 4).Draw(t, "of one index") {
			kind := rapid.SampledFrom([]lease.EventKind{lease.EventGranted, lease.EventExtended, ""}).Draw(t, "kind")
			// Equal events of one index can be told apart only by their number.
			h = append(h, lease.Event{Index: index, Kind: kind, Record: lease.Record{Name: "x", Token: uint64(len(h) + 1)}})
		}
	}
	return h
}

// stream is what a member reports after an index, if it knows up to a position.
// Without the changes after that index it begins with its state.
func (h history) stream(after uint64, upTo int, forgotten bool) []lease.Event {
	var out []lease.Event
	if after == 0 || forgotten {
		at := uint64(0)
		if upTo > 0 {
			at = h[upTo-1].Index
		}
		out = append(out, lease.Event{Index: at, Kind: lease.EventState}, lease.Event{Index: at, Kind: lease.EventState},
			lease.Event{Index: at, Kind: lease.EventSynced})
		after = at
	}
	for _, e := range h {
		if e.Index > after {
			out = append(out, e)
		}
	}
	return out
}

// ends moves a position to the end of its index: a state is one of whole
// entries.
func (h history) ends(upTo int) int {
	for upTo > 0 && upTo < len(h) && h[upTo].Index == h[upTo-1].Index {
		upTo++
	}
	return upTo
}

func TestPlace_LosesNothingAndRepeatsNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := histories(t)
		var seen []lease.Event
		p := newPlace(0)
		for cuts := rapid.IntRange(0, 8).Draw(t, "cuts"); cuts >= 0; cuts-- {
			upTo := h.ends(rapid.IntRange(0, len(h)).Draw(t, "member knows"))
			all := h.stream(p.after, upTo, rapid.Bool().Draw(t, "forgotten"))
			if cuts > 0 {
				all = all[:rapid.IntRange(0, len(all)).Draw(t, "cut")]
			}
			p.begin()
			for _, e := range all {
				seen = append(seen, p.next(e)...)
			}
		}

		// Replay what was reported: each state stands for all changes up to its
		// index, and each change has to be the next one.
		at := 0 // events of h that were told
		for i, e := range seen {
			switch e.Kind {
			case lease.EventState:
				if next := seen[i+1]; next.Kind != lease.EventState && next.Kind != lease.EventSynced {
					t.Fatalf("a state was cut short: %v", seen)
				}
			case lease.EventSynced:
				told := at
				for at = 0; at < len(h) && h[at].Index <= e.Index; at++ {
				}
				if at < told {
					t.Fatalf("a state of index %d came after event %d: %v", e.Index, told, seen)
				}
			default:
				for at < len(h) && h[at].Kind == "" {
					at++
				}
				if at == len(h) || !reflect.DeepEqual(e, h[at]) {
					t.Fatalf("event %d is %+v: %v of %v", at, e, seen, h)
				}
				at++
			}
		}
		for at < len(h) && h[at].Kind == "" {
			at++
		}
		if at != len(h) {
			t.Fatalf("%d of %d events were told: %v of %v", at, len(h), seen, h)
		}
	})
}
