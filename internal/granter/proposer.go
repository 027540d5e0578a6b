package granter

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/raftlease/raftlease/internal/state"
)

// Bounds of one log entry and of the entries under way. One commit costs two
// rounds of disk writes however many commands it carries, so packing them is
// the throughput.
const (
	maxEntryCommands = 512
	maxEntryBytes    = 64 << 10
	maxInFlight      = 4
	enqueueTimeout   = 2 * time.Second
)

// errNotProposed means that nothing entered the log, or that it is void there:
// the command may be sent again, here or elsewhere. Any other error of a
// proposal leaves its outcome unknown.
var errNotProposed = errors.New("not proposed")

// proposal is a group of commands that go into one log entry together, in
// order. done is called exactly once, on a goroutine of the proposer, after the
// state machine has applied the entry or when that failed; it must not block.
// It is not called for a proposal that was withdrawn.
type proposal struct {
	cmds []state.Command
	done func([]state.Result, error)

	left bool // the queue: taken or withdrawn; guarded by proposer.mu
}

// proposer packs proposals into log entries. It has no timer: while entries are
// in flight, commands gather into the next one. Safe for concurrent use.
type proposer struct {
	term  uint64 // in which everything proposed is decided
	apply func(entry []byte, timeout time.Duration) raft.ApplyFuture
	over  func() // called when raft's answer says that the term is over

	mu     sync.Mutex
	queue  []*proposal
	flying int  // entries given to raft whose outcome is not known
	ended  bool // raft's answer to one said that the term is over
	closed bool

	wake    chan struct{} // capacity 1
	stop    chan struct{} // closed with closed set
	flights chan flight
	wg      sync.WaitGroup
}

// flight is one entry under way.
type flight struct {
	future raft.ApplyFuture
	batch  []*proposal
}

func newProposer(term uint64, apply func([]byte, time.Duration) raft.ApplyFuture, over func()) *proposer {
	p := &proposer{
		term:  term,
		apply: apply,
		over:  over,
		wake:  make(chan struct{}, 1),
		stop:  make(chan struct{}),
		// One flight is with land, one at the channel's door.
		flights: make(chan flight, maxInFlight-2),
	}
	p.wg.Go(p.launch)
	p.wg.Go(p.land)
	return p
}

// propose queues a proposal and returns at once. After close it takes none:
// then nothing was done and done is not called.
func (p *proposer) propose(q *proposal) (taken bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.queue = append(p.queue, q)
	select {
	case p.wake <- struct{}{}:
	default:
	}
	return true
}

// withdraw takes a proposal back and reports whether that was possible: then it
// never enters the log and done is not called.
func (p *proposer) withdraw(q *proposal) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if q.left {
		return false
	}
	q.left = true
	return true
}

// close refuses what is queued, waits for what is in flight and returns. raft
// must be about to answer: it has lost leadership or is shutting down.
func (p *proposer) close() {
	p.mu.Lock()
	if !p.closed {
		p.closed = true
		close(p.stop)
	}
	p.mu.Unlock()
	p.wg.Wait()
}

// take returns what goes into the next entry, or what is refused when the
// proposer is closed or its term is over.
func (p *proposer) take() (batch []*proposal, refuse, closed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n, cmds, size := 0, 0, 0
	for ; n < len(p.queue); n++ {
		q := p.queue[n]
		if q.left { // withdrawn
			continue
		}
		for _, c := range q.cmds {
			size += c.Size()
		}
		cmds += len(q.cmds)
		if len(batch) > 0 && (cmds > maxEntryCommands || size > maxEntryBytes) {
			break
		}
		q.left = true
		batch = append(batch, q)
	}
	p.queue = p.queue[n:]
	if len(p.queue) == 0 {
		p.queue = nil
	}
	refuse = p.closed || p.ended
	if len(batch) > 0 && !refuse {
		p.flying++
	}
	return batch, refuse, p.closed
}

func (p *proposer) launch() {
	defer close(p.flights)
	for {
		select {
		case <-p.wake:
		case <-p.stop:
		}
		for {
			batch, refuse, closed := p.take()
			switch {
			case len(batch) == 0 && closed:
				return
			case refuse:
				land(batch, nil, errNotProposed)
				if len(batch) > 0 {
					continue
				}
			case len(batch) > 0:
				entry := state.EncodeEntry(state.Entry{Term: p.term, Commands: commands(batch)})
				p.flights <- flight{p.apply(entry, enqueueTimeout), batch}
				continue
			}
			break
		}
	}
}

func commands(batch []*proposal) []state.Command {
	var cmds []state.Command
	for _, q := range batch {
		cmds = append(cmds, q.cmds...)
	}
	return cmds
}

func (p *proposer) land() {
	for f := range p.flights {
		results, err := outcome(f.future)
		land(f.batch, results, err)
		if p.landed(err) {
			p.over()
		}
	}
}

// landed counts a flight off and reports whether the term is over. That is told
// only when nothing is in flight any more, because those who wait for the rest
// would take its outcome for unknown; raft answers all of it at once.
func (p *proposer) landed(err error) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.flying--
	p.ended = p.ended || endsTerm(err)
	return p.ended && p.flying == 0
}

// land hands each proposal its part of the results.
func land(batch []*proposal, results []state.Result, err error) {
	for _, q := range batch {
		if err != nil {
			q.done(nil, err)
			continue
		}
		q.done(results[:len(q.cmds):len(q.cmds)], nil)
		results = results[len(q.cmds):]
	}
}

// errStale means that the entry came into another term, where it is void.
var errStale = errors.New("the entry came into a later term")

// endsTerm reports whether err is an answer that only a node gives which does
// not lead in the proposer's term any more. A node that leads again leads in a
// later one.
func endsTerm(err error) bool {
	return errors.Is(err, raft.ErrNotLeader) || errors.Is(err, raft.ErrLeadershipLost) ||
		errors.Is(err, raft.ErrRaftShutdown) || errors.Is(err, errStale)
}

// outcome waits for an entry and sorts raft's errors: only these three mean
// that nothing was appended.
func outcome(f raft.ApplyFuture) ([]state.Result, error) {
	switch err := f.Error(); {
	case errors.Is(err, raft.ErrNotLeader), errors.Is(err, raft.ErrEnqueueTimeout),
		errors.Is(err, raft.ErrLeadershipTransferInProgress):
		return nil, fmt.Errorf("%w: %w", errNotProposed, err)
	case err != nil:
		return nil, err
	}
	switch r := f.Response().(type) {
	case []state.Result:
		if len(r) > 0 && r[0].Code == state.Stale {
			return nil, fmt.Errorf("%w: %w", errNotProposed, errStale)
		}
		return r, nil
	case error:
		return nil, r
	default:
		return nil, fmt.Errorf("state machine answered %T", r)
	}
}
