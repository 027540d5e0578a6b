package state

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
)

// apply carries out one command that was decided in the term decided and stands
// in a log entry of the term term. m.mu is held.
//
// The two differ when a leader is deposed and elected again between deciding a
// command and appending it. Then another leader may have promised more than
// this one knew of: an Expire could end a grant that was renewed there, a
// Shorten could take back what was promised there (rule 13). So all of it is
// void, and whoever asked for it asks again.
func (m *Machine) apply(index, term, decided uint64, c Command) Result {
	if decided != term && c.Kind != KindEpoch {
		return Result{Code: Stale}
	}
	switch c.Kind {
	case KindAcquire:
		return m.acquire(index, c)
	case KindRenew:
		return m.renew(index, c)
	case KindShorten:
		return m.shorten(c)
	case KindRelease:
		return m.release(index, c)
	case KindExpire:
		return m.expire(index, c)
	case KindPut:
		return m.put(c)
	case KindBreak:
		return m.breakLease(index, c)
	case KindReclaim:
		return m.reclaim(index, c)
	case KindEpoch:
		return Result{Code: OK, Term: term}
	}
	return Result{Code: Rejected, Why: fmt.Sprintf("kind is %d, want %d to %d", c.Kind, KindAcquire, kindEnd-1)}
}

// acquire grants a free name with the next token. To the owner that has the
// name already it records a refresh: same token, the larger ttl, because the
// longer promise may be outstanding (only Shorten lowers it). To anybody else
// it is Held. When the tokens are used up a free name is Rejected (G2); what is
// held can still be refreshed.
func (m *Machine) acquire(index uint64, c Command) Result {
	var f faults
	f.identifier("name", c.Name)
	f.identifier("owner", c.Owner)
	f.ttl(c.TTL)
	if c.Session != (Session{}) {
		f.session(c.Session)
	}
	old := m.leases.get(c.Name)
	if f == nil && !old.held() && m.next > maxToken {
		f.add("next token", "used up", "at most 2^53-1: free names can no longer be granted, held ones can be renewed")
	}
	switch {
	case f != nil:
		return rejected(f)
	case old.held() && old.Owner != c.Owner:
		return Result{Code: Held, Lease: old.copy()}
	case old.held():
		l := *old
		l.TTL, l.Revision, l.Session = max(l.TTL, c.TTL), index, l.Session.join(c.Session)
		return m.replace(&l)
	}
	l := Lease{Name: c.Name, Owner: c.Owner, Token: m.next, TTL: c.TTL, Session: c.Session, Revision: index}
	if old != nil {
		l.Data, l.DataToken = old.Data, old.DataToken
	}
	m.next++
	m.live++
	r := m.replace(&l)
	r.New = true
	return r
}

// join returns the session of a grant that was taken in s and is taken again in
// t. Reclaim frees a grant because the one process that believes in it is dead.
// Once the grant was given to two, a session and none or two different nodes or
// disks, no end of one proves that of the other: then it has none and lasts its
// ttl (G3). Of two incarnations on one disk the smaller is dead, also when its
// command comes late.
func (s Session) join(t Session) Session {
	switch {
	case s.Node != t.Node || s.Disk != t.Disk:
		return Session{}
	case t.Incarnation > s.Incarnation:
		return t
	}
	return s
}

// renew records a refresh of exactly this grant: the larger ttl and a new
// revision, so that an expiry decided before it does not fire.
func (m *Machine) renew(index uint64, c Command) Result {
	var f faults
	f.identifier("name", c.Name)
	f.identifier("owner", c.Owner)
	f.token(c.Token)
	f.ttl(c.TTL)
	if f != nil {
		return rejected(f)
	}
	old := m.leases.get(c.Name)
	if !old.is(c.Token) || old.Owner != c.Owner {
		return notLive(old)
	}
	l := *old
	l.TTL, l.Revision = max(l.TTL, c.TTL), index
	return m.replace(&l)
}

// shorten lowers the recorded ttl of exactly this grant. It keeps the revision:
// it promises nothing, so it must not undo an expiry that was decided before
// it; and one decided after it still finds the revision that the grant's last
// promise has.
func (m *Machine) shorten(c Command) Result {
	var f faults
	f.identifier("name", c.Name)
	f.token(c.Token)
	f.ttl(c.TTL)
	if f != nil {
		return rejected(f)
	}
	old := m.leases.get(c.Name)
	if !old.is(c.Token) {
		return notLive(old)
	}
	l := *old
	l.TTL = min(l.TTL, c.TTL)
	return m.replace(&l)
}

// release frees exactly this grant; of any other it is NotLive without effect.
func (m *Machine) release(index uint64, c Command) Result {
	var f faults
	f.identifier("name", c.Name)
	f.identifier("owner", c.Owner)
	f.token(c.Token)
	if f != nil {
		return rejected(f)
	}
	old := m.leases.get(c.Name)
	if !old.is(c.Token) || old.Owner != c.Owner {
		return notLive(old)
	}
	return m.end(index, old)
}

// expire frees those of the named grants that were neither ended nor refreshed
// since they were named. Names are not checked here: one that breaks the limits
// names no grant.
func (m *Machine) expire(index uint64, c Command) Result {
	var ended []Lease
	for _, e := range c.Ends {
		if l := m.leases.get(e.Name); l.is(e.Token) && l.Revision == e.Revision {
			ended = append(ended, m.free(index, l))
		}
	}
	slices.SortFunc(ended, func(a, b Lease) int { return cmp.Compare(a.Name, b.Name) })
	return Result{Code: OK, Ended: ended}
}

// put writes the data of the lease, for the live token only (G7). Empty data
// removes it. A refresh it is not: the revision stays.
func (m *Machine) put(c Command) Result {
	var f faults
	f.identifier("name", c.Name)
	f.token(c.Token)
	f.data(c.Data)
	if f != nil {
		return rejected(f)
	}
	old := m.leases.get(c.Name)
	if !old.is(c.Token) {
		return notLive(old)
	}
	l := *old
	l.Data, l.DataToken = nil, 0
	if len(c.Data) > 0 {
		l.Data, l.DataToken = bytes.Clone(c.Data), c.Token
	}
	return m.replace(&l)
}

// breakLease frees the name whoever has it. It is the operator's verb: the
// holder is not asked, and G3 does not hold for it.
func (m *Machine) breakLease(index uint64, c Command) Result {
	var f faults
	f.identifier("name", c.Name)
	if f != nil {
		return rejected(f)
	}
	old := m.leases.get(c.Name)
	if !old.held() {
		return notLive(old)
	}
	return m.end(index, old)
}

// reclaim frees every grant of an earlier incarnation of the node on the same
// disk. A node on another disk is somebody else: nothing proves it dead.
func (m *Machine) reclaim(index uint64, c Command) Result {
	var f faults
	f.session(c.Session)
	if f != nil {
		return rejected(f)
	}
	var old []*Lease
	m.leases.ascend("", func(l *Lease) bool {
		s := l.Session
		if l.held() && s.Node == c.Session.Node && s.Disk == c.Session.Disk && s.Incarnation < c.Session.Incarnation {
			old = append(old, l)
		}
		return true
	})
	var ended []Lease
	for _, l := range old {
		ended = append(ended, m.free(index, l))
	}
	return Result{Code: OK, Ended: ended}
}

// replace makes l the record of its name.
func (m *Machine) replace(l *Lease) Result {
	m.leases.set(l)
	return Result{Code: OK, Lease: l.copy()}
}

// end frees the live grant of l as the one effect of a command.
func (m *Machine) end(index uint64, l *Lease) Result {
	ended := m.free(index, l)
	return Result{Code: OK, Lease: ended, Ended: []Lease{ended}}
}

// free ends the live grant of l and returns it. Data stays for the next holder;
// a record without any leaves the state.
func (m *Machine) free(index uint64, l *Lease) Lease {
	m.live--
	if len(l.Data) == 0 {
		m.leases.remove(l.Name)
	} else {
		m.leases.set(&Lease{Name: l.Name, Revision: index, Data: l.Data, DataToken: l.DataToken})
	}
	return l.copy()
}

func rejected(f faults) Result { return Result{Code: Rejected, Why: f.why()} }

// notLive is the outcome of a command for a grant that is not l's.
func notLive(l *Lease) Result {
	r := Result{Code: NotLive}
	if l.held() {
		r.Lease = l.copy()
	}
	return r
}
