package granter

import (
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/raftlease/raftlease/internal/state"
)

// fakeLog stands for raft and the state machine of a node: entries are
// appended and applied one after the other, and the granter that leads sees
// each before anybody learns its results. It runs in a testing/synctest bubble.
type fakeLog struct {
	machine *state.Machine
	queue   chan *fakeFuture
	wg      sync.WaitGroup

	mu      sync.Mutex
	leader  string // node that leads
	term    uint64
	index   uint64
	granter *Granter // who is told of entries
	entries []appended
	latency time.Duration // of one commit
	// script tells what befalls an entry that a granter proposes; nil means
	// nothing does.
	script             func(state.Entry) fate
	inFlight, maxAhead int
}

// appended is one entry of the log, with what came of it.
type appended struct {
	at      time.Time
	term    uint64 // of the log entry
	entry   state.Entry
	results []state.Result
}

// fate is what befalls one entry.
type fate struct {
	refuse error           // not appended; the proposer gets this
	fail   error           // appended and applied; the proposer gets this all the same
	late   time.Duration   // more time until it is committed
	hold   <-chan struct{} // not committed before this is closed
	before func()          // called just before it is committed
	after  func()          // called when it is applied, before the proposer is told
}

// fakeFuture is a raft.ApplyFuture.
type fakeFuture struct {
	node   string
	data   []byte
	done   chan struct{}
	err    error
	result any
}

func (f *fakeFuture) Error() error  { <-f.done; return f.err }
func (f *fakeFuture) Response() any { return f.result }
func (f *fakeFuture) Index() uint64 { return 0 }

func newFakeLog(t testing.TB) *fakeLog {
	l := &fakeLog{machine: state.New("c"), queue: make(chan *fakeFuture, 1<<16), latency: time.Millisecond}
	l.wg.Go(l.run)
	t.Cleanup(func() {
		close(l.queue)
		l.wg.Wait()
	})
	return l
}

// applier returns the Apply of one node.
func (l *fakeLog) applier(node string) func([]byte, time.Duration) raft.ApplyFuture {
	return func(data []byte, _ time.Duration) raft.ApplyFuture {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.inFlight++
		l.maxAhead = max(l.maxAhead, l.inFlight)
		f := &fakeFuture{node: node, data: data, done: make(chan struct{})}
		l.queue <- f
		return f
	}
}

func (l *fakeLog) run() {
	for f := range l.queue {
		e, err := state.DecodeEntry(f.data)
		if err != nil {
			panic(err)
		}
		l.mu.Lock()
		var it fate
		if l.script != nil {
			it = l.script(e)
		}
		wait := l.latency + it.late
		l.mu.Unlock()
		if it.refuse != nil {
			f.err = it.refuse
		} else {
			if it.hold != nil {
				<-it.hold
			}
			time.Sleep(wait)
			if it.before != nil {
				it.before()
			}
			l.commit(f, e)
			if it.after != nil {
				it.after()
			}
			if it.fail != nil {
				f.err = it.fail
			}
		}
		l.mu.Lock()
		l.inFlight--
		l.mu.Unlock()
		close(f.done)
	}
}

func (l *fakeLog) commit(f *fakeFuture, e state.Entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if f.node != l.leader {
		f.err = raft.ErrNotLeader
		return
	}
	f.result = l.append(e)
}

// append applies e as the next entry. l.mu is held.
func (l *fakeLog) append(e state.Entry) []state.Result {
	l.index++
	rs := l.machine.ApplyEntry(l.index, l.term, e)
	l.entries = append(l.entries, appended{time.Now(), l.term, e, rs})
	if l.granter != nil {
		l.granter.Applied(l.term, e, rs)
	}
	return rs
}

// elect makes node the leader of term; make builds its granter, which takes
// over before any later entry.
func (l *fakeLog) elect(node string, term uint64, make func() *Granter) *Granter {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leader, l.term, l.granter = node, term, nil
	l.append(state.Entry{Term: term, Commands: []state.Command{{Kind: state.KindEpoch}}})
	l.granter = make()
	l.granter.TakeOver(l.machine)
	return l.granter
}

// set changes what befalls later entries.
func (l *fakeLog) set(script func(state.Entry) fate) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.script = script
}

func (l *fakeLog) history() []appended {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.entries[:len(l.entries):len(l.entries)]
}

// commands returns all commands of one kind in the log, with their results.
func (l *fakeLog) commands(kind state.Kind) (cs []state.Command, rs []state.Result) {
	for _, a := range l.history() {
		for i, c := range a.entry.Commands {
			if c.Kind == kind {
				cs, rs = append(cs, c), append(rs, a.results[i])
			}
		}
	}
	return cs, rs
}

// has reports whether e has a command of this kind.
func has(e state.Entry, kind state.Kind) bool {
	for _, c := range e.Commands {
		if c.Kind == kind {
			return true
		}
	}
	return false
}

// once makes a script that lets it befall the first entry with a command of
// this kind.
func once(kind state.Kind, it fate) func(state.Entry) fate {
	used := false
	return func(e state.Entry) fate {
		if used || !has(e, kind) {
			return fate{}
		}
		used = true
		return it
	}
}
