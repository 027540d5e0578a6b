package client

import "github.com/raftlease/raftlease/lease"

// place is how far a watch has got, over all the streams that it reads.
//
// Several events may share an index, and a stream can break between them. Every
// member reports the changes of one index in the same order, so the next stream
// begins before that index and skips as many of its events as are known.
type place struct {
	after uint64 // everything up to here is known: where a stream begins
	at    uint64 // the index of the last known event, not below after
	known int    // how many events of at are known
	moved bool   // something was reported, so after is of this cluster

	skip  int           // of the present stream: known events of at to come
	group []lease.Event // of the present stream: a state that is not complete
}

func newPlace(after uint64) place { return place{after: after, at: after} }

// begin is called before a stream that begins at after is read.
func (p *place) begin() { p.skip, p.group = p.known, nil }

// next takes the next event of a stream and returns what there is to report: the
// event, nothing, or a whole state.
func (p *place) next(e lease.Event) []lease.Event {
	switch e.Kind {
	case lease.EventState:
		p.group = append(p.group, e)
		return nil
	case lease.EventSynced:
		return p.state(append(p.group, e), e.Index)
	}
	switch {
	case e.Index <= p.after || e.Index < p.at:
		return nil
	case e.Index == p.at && p.skip > 0:
		p.skip--
		return nil
	case e.Index > p.at:
		p.after, p.at, p.known, p.skip = p.at, e.Index, 0, 0
	}
	p.known++
	p.moved = true
	if e.Kind == "" { // of a later version; it counts, but cannot be told
		return nil
	}
	return []lease.Event{e}
}

// state takes a complete state. One from before what was reported, which a
// member that lags behind sends, would take the caller back in time; the changes
// that lead from there to here follow it and are skipped.
func (p *place) state(group []lease.Event, index uint64) []lease.Event {
	p.group = nil
	if p.moved && (index <= p.after || index < p.at) {
		return nil
	}
	p.after, p.at, p.known, p.skip, p.moved = index, index, 0, 0, true
	return group
}
