package state

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"sync"
)

// Machine is the replicated state. One goroutine at a time may apply and
// restore; all other methods are safe for concurrent use with it and with each
// other. What the methods return shares no memory with the state.
type Machine struct {
	mu sync.RWMutex // guards contents
	contents
}

// contents are what a Machine holds and a Snapshot is a view of.
type contents struct {
	clusterID string
	index     uint64 // of the last applied entry
	next      uint64 // token of the next grant; maxToken+1 when all are used up
	live      int    // grants
	leases    tree
}

// New returns the empty state of a cluster. With the id "" it takes the id of
// the first snapshot it restores. It panics when the id is longer than 255
// bytes.
func New(clusterID string) *Machine {
	checkClusterID("New", clusterID)
	return &Machine{contents: contents{clusterID: clusterID, next: 1}}
}

func checkClusterID(method, id string) {
	if len(id) > maxName {
		panic(fmt.Sprintf("state.%s: cluster id has %d bytes, want at most %d", method, len(id), maxName))
	}
}

// Apply carries out the commands of one log entry, in order, and returns their
// outcomes by position. index is that of the entry and larger than every
// earlier one, term is the entry's own (raft.Log.Term). The only error is a
// *FormatError; then nothing was applied, and the node has to stop, because
// going on would make replicas differ.
func (m *Machine) Apply(index, term uint64, entry []byte) ([]Result, error) {
	e, err := DecodeEntry(entry)
	if err != nil {
		return nil, err
	}
	return m.ApplyEntry(index, term, e), nil
}

// ApplyEntry is Apply for an entry that is decoded already.
func (m *Machine) ApplyEntry(index, term uint64, e Entry) []Result {
	m.mu.Lock()
	defer m.mu.Unlock()
	results := make([]Result, len(e.Commands))
	for i, c := range e.Commands {
		results[i] = m.apply(index, term, e.Term, c)
	}
	m.index = index
	return results
}

// Get returns the record of name; false when the name is free and has no data.
func (m *Machine) Get(name string) (Lease, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	l := m.leases.get(name)
	if l == nil {
		return Lease{}, false
	}
	return l.copy(), true
}

// List returns the records whose names begin with prefix, in byte order of
// their names, all of one moment. It holds up no apply however many there are;
// Snapshot.All does the same without the list.
func (m *Machine) List(prefix string) []Lease {
	var list []Lease
	view := m.Snapshot()
	if prefix == "" {
		list = slices.Grow(list, view.leases.n)
	}
	return slices.AppendSeq(list, view.All(prefix))
}

// Live returns the number of grants.
func (m *Machine) Live() int {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.live
}

// NextToken returns the token that the next grant takes; 2^53 when all are used
// up.
func (m *Machine) NextToken() uint64 {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.next
}

// ClusterID returns the id of the cluster whose state this is.
func (m *Machine) ClusterID() string {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.clusterID
}

// Index returns the index of the last entry applied, here or before the
// snapshot was taken that was restored; 0 when there is none.
func (m *Machine) Index() uint64 {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.index
}

// Snapshot returns a view of the present state. It takes no time that depends
// on the size of the state, and later applies do not change it.
func (m *Machine) Snapshot() *Snapshot { return &Snapshot{m.view()} }

// Hash returns a hash of the whole state: that of its snapshot. Replicas at the
// same index have the same.
func (m *Machine) Hash() [32]byte { return m.Snapshot().Hash() }

// Restore replaces the state by a snapshot read from r up to its end. On any
// error the state is unchanged. What is not exactly one snapshot is a
// *FormatError, see ReadSnapshot. A snapshot of another cluster is refused too,
// see Snapshot.SetClusterID.
func (m *Machine) Restore(r io.Reader) error {
	s, err := ReadSnapshot(r)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.clusterID != "" && m.clusterID != s.clusterID {
		return fmt.Errorf("cluster id of the snapshot is %q, want %q: take a snapshot of this cluster, "+
			"or adopt this one on purpose", s.clusterID, m.clusterID)
	}
	m.contents = s.contents
	return nil
}

func (m *Machine) view() contents {
	m.mu.Lock() // not RLock: a view marks the tree as shared
	defer m.mu.Unlock()
	v := m.contents
	v.leases = m.leases.view()
	return v
}

// held reports whether l has a live grant. l may be nil.
func (l *Lease) held() bool { return l != nil && l.Token != 0 }

// is reports whether l has the live grant with this token. l may be nil.
func (l *Lease) is(token uint64) bool { return l.held() && l.Token == token }

// copy returns l with data of its own, because a caller who changes what a
// Machine returned must not make replicas differ.
func (l *Lease) copy() Lease {
	c := *l
	c.Data = bytes.Clone(l.Data)
	return c
}
