package raftlease

import (
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/hashicorp/raft"

	"github.com/raftlease/raftlease/internal/granter"
	"github.com/raftlease/raftlease/internal/state"
)

// fsm puts the pure state machine under raft. It applies entries, tells the
// granter and the watchers in log order what they did, and stops for good at an
// entry that this build does not understand, because going on would make
// replicas differ (G8).
type fsm struct {
	machine    *state.Machine
	events     *eventLog
	broken     func(error) // asks the node to stop; called once, on its own goroutine
	configured func()      // called after the members have changed; must not block

	// mu orders an apply with the readers that must see state, granter and
	// events at one index.
	mu      sync.RWMutex
	err     error
	granter *granter.Granter // follows every entry; nil until the node first leads
	moved   chan struct{}    // closed when the index has risen; nil while nobody waits
}

func newFSM(clusterID string, broken func(error), configured func()) *fsm {
	return &fsm{machine: state.New(clusterID), events: newEventLog(), broken: broken, configured: configured}
}

// follow makes g take over the present state and see every later entry, with
// none in between.
func (f *fsm) follow(g *granter.Granter) {
	f.mu.Lock()
	defer f.mu.Unlock()
	g.TakeOver(f.machine)
	f.granter = g
}

// position returns the index of the last entry applied, and a channel that is
// closed when it has risen.
func (f *fsm) position() (uint64, <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.moved == nil {
		f.moved = make(chan struct{})
	}
	return f.machine.Index(), f.moved
}

// move wakes those who wait for an index. f.mu is held.
func (f *fsm) move() {
	if f.moved != nil {
		close(f.moved)
		f.moved = nil
	}
}

// Apply implements raft.FSM. It returns []state.Result or an error.
func (f *fsm) Apply(log *raft.Log) any {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return f.err
	}
	e, err := state.DecodeEntry(log.Data)
	if err != nil {
		f.err = fmt.Errorf("apply log entry %d of term %d: %w; this node stops so that replicas stay alike: "+
			"run the version of raftlease that wrote the entry, or a newer one", log.Index, log.Term, err)
		go f.broken(f.err)
		return f.err
	}
	results := f.machine.ApplyEntry(log.Index, log.Term, e)
	// Before the granter answers anybody: its answers say why a grant ended.
	f.events.record(log.Index, e.Commands, results)
	if f.granter != nil {
		f.granter.Applied(log.Term, e, results)
	}
	f.move()
	return results
}

// StoreConfiguration implements raft.ConfigurationStore. raft keeps the members
// itself; the node only wants to look at them again.
func (f *fsm) StoreConfiguration(uint64, raft.Configuration) { f.configured() }

// Snapshot implements raft.FSM.
func (f *fsm) Snapshot() (raft.FSMSnapshot, error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if f.err != nil {
		return nil, f.err
	}
	return fsmSnapshot{f.machine.Snapshot()}, nil
}

// Restore implements raft.FSM. A damaged snapshot is refused whole.
func (f *fsm) Restore(r io.ReadCloser) error {
	err := f.restore(r)
	return errors.Join(err, r.Close())
}

func (f *fsm) restore(r io.Reader) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.machine.Restore(r); err != nil {
		return fmt.Errorf("restore snapshot: %w", err)
	}
	if f.granter != nil {
		f.granter.End() // its deadlines belong to the state that is gone
	}
	f.err = nil
	f.events.reset(f.machine.Index())
	f.move()
	return nil
}

// fsmSnapshot is a consistent copy on its way to disk.
type fsmSnapshot struct{ *state.Snapshot }

// Persist implements raft.FSMSnapshot.
func (s fsmSnapshot) Persist(sink raft.SnapshotSink) error {
	if _, err := s.WriteTo(sink); err != nil {
		return errors.Join(err, sink.Cancel())
	}
	return sink.Close()
}

// Release implements raft.FSMSnapshot.
func (fsmSnapshot) Release() {}
