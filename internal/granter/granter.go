package granter

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/raftlease/raftlease/internal/clock"
	"github.com/raftlease/raftlease/internal/state"
	"github.com/raftlease/raftlease/lease"
)

// errOver means that the granter's term is over or its node is stopping.
var errOver = errors.New("term of this granter is over")

// Config is what a Granter stands on.
type Config struct {
	Term         uint64 // the term it serves: the result of its own Epoch command
	Clock        clock.Granter
	Quorum       Quorum
	Apply        func(entry []byte, timeout time.Duration) raft.ApplyFuture
	ConfirmLimit time.Duration // longest confirm round
	// Ended tells why a grant that is no longer live ended, if it is known.
	Ended  func(token uint64) (lease.Reason, bool)
	Logger hclog.Logger
}

// Granter decides the grants of one term. Safe for concurrent use.
type Granter struct {
	cfg      Config
	log      hclog.Logger
	proposer *proposer
	confirm  confirmer
	ctx      context.Context // ends with the term
	cancel   context.CancelCauseFunc
	wg       sync.WaitGroup
	rearm    chan struct{} // capacity 1: the agenda has an earlier first slot

	mu      sync.Mutex
	machine *state.Machine
	slots   map[string]*slot
	agenda  agenda
}

// New makes a granter for cfg.Term. Until TakeOver it serves nothing.
func New(cfg Config) *Granter {
	ctx, cancel := context.WithCancelCause(context.Background())
	g := &Granter{
		cfg:      cfg,
		log:      cfg.Logger,
		proposer: newProposer(cfg.Term, cfg.Apply),
		ctx:      ctx,
		cancel:   cancel,
		rearm:    make(chan struct{}, 1),
		slots:    map[string]*slot{},
	}
	g.confirm = confirmer{quorum: cfg.Quorum, term: cfg.Term, limit: cfg.ConfirmLimit, ctx: ctx}
	return g
}

// TakeOver gives every lease in m a fresh full ttl from now (rule 2) and starts
// the expiry. m must contain the Epoch entry of the term, and Applied must be
// called for every entry after it. The caller sees to that no entry is applied
// during TakeOver.
//
// Why fresh and full: whatever the last leader promised, it promised before
// this leader was elected, and no longer than the recorded ttl.
func (g *Granter) TakeOver(m *state.Machine) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.machine = m
	now := g.cfg.Clock()
	for l := range m.Snapshot().All("") {
		if l.Token != 0 {
			s := g.slot(l.Name)
			s.grant(l, now, l.TTL)
			g.agenda.schedule(s, s.deadline)
		}
	}
	g.wg.Go(g.expire)
}

// Term returns the term served.
func (g *Granter) Term() uint64 { return g.cfg.Term }

// Over reports whether the term is over.
func (g *Granter) Over() bool { return g.ctx.Err() != nil }

// Done is closed when the term is over.
func (g *Granter) Done() <-chan struct{} { return g.ctx.Done() }

// End says that the term is over; calls under way return at once. It does not
// wait.
func (g *Granter) End() { g.cancel(errOver) }

// Close ends the term and waits for everything the granter started. raft must
// have lost its leadership or be shutting down, else entries under way may make
// it wait for them.
func (g *Granter) Close() {
	g.End()
	g.proposer.close()
	g.confirm.wg.Wait()
	g.wg.Wait()
}

// slot returns the slot of name, made when there is none.
func (g *Granter) slot(name string) *slot {
	s := g.slots[name]
	if s == nil {
		s = &slot{name: name, heapPos: -1}
		g.slots[name] = s
	}
	return s
}

// Applied follows the state machine, entry by entry, in log order. It is called
// by the state machine's goroutine before anybody learns the results.
func (g *Granter) Applied(term uint64, e state.Entry, results []state.Result) {
	if term != g.cfg.Term {
		g.End() // a later term has begun
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.cfg.Clock()
	for i, c := range e.Commands {
		g.follow(c, results[i], now)
	}
}

func (g *Granter) follow(c state.Command, r state.Result, now time.Duration) {
	switch c.Kind {
	case state.KindAcquire, state.KindRenew:
		if r.Code == state.OK {
			s := g.slot(c.Name)
			s.grant(r.Lease, now, c.TTL)
			s.claimed = s.claimed || !r.New
			g.schedule(s, s.deadline)
		}
	case state.KindShorten:
		if s := g.slots[c.Name]; s != nil && s.live && s.token == c.Token {
			s.shorten = 0
			if r.Code == state.OK {
				s.record(r.Lease.TTL)
			}
		}
	case state.KindExpire:
		// A refresh that was ahead in the log has saved the others.
		for _, e := range c.Ends {
			if s := g.slots[e.Name]; s != nil && s.live && s.token == e.Token && !ended(r.Ended, e) {
				s.settle()
				g.schedule(s, s.deadline)
				g.serveOwner(s)
			}
		}
	}
	for _, l := range r.Ended {
		if s := g.slots[l.Name]; s != nil && s.live && s.token == l.Token {
			s.free()
			g.agenda.drop(s)
			g.offer(s)
			g.tidy(s)
		}
	}
}

func ended(list []state.Lease, e state.End) bool {
	for _, l := range list {
		if l.Name == e.Name && l.Token == e.Token {
			return true
		}
	}
	return false
}

// tidy forgets a slot that nothing needs.
func (g *Granter) tidy(s *slot) {
	if !s.live && len(s.waiters) == 0 {
		delete(g.slots, s.name)
	}
}

// schedule puts s on the agenda and wakes the expiry when s comes first.
func (g *Granter) schedule(s *slot, due time.Duration) {
	g.agenda.schedule(s, due)
	if s.heapPos == 0 {
		select {
		case g.rearm <- struct{}{}:
		default:
		}
	}
}

// propose sends one command through the log and waits for its result. When ctx
// ends first the outcome is unknown.
func (g *Granter) propose(ctx context.Context, cmd state.Command) (state.Result, error) {
	type answer struct {
		r   state.Result
		err error
	}
	got := make(chan answer, 1)
	taken := g.proposer.propose(proposal{cmds: []state.Command{cmd}, done: func(rs []state.Result, err error) {
		if err != nil {
			got <- answer{err: err}
			return
		}
		got <- answer{r: rs[0]}
	}})
	if !taken {
		return state.Result{}, errOver
	}
	select {
	case a := <-got:
		return a.r, a.err
	case <-ctx.Done():
		return state.Result{}, context.Cause(ctx)
	}
}
