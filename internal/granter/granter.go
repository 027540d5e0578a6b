package granter

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/raftlease/raftlease/internal/clock"
	"github.com/raftlease/raftlease/internal/state"
	"github.com/raftlease/raftlease/lease"
	pb "github.com/raftlease/raftlease/transport/rpc/raftleasev1"
)

var (
	// errOver means that the granter's term is over or its node is stopping,
	// and that nothing was done.
	errOver = errors.New("term of this granter is over")
	// errCut means that the term ended while a proposal was under way.
	errCut = errors.New("term ended before the outcome was known")
)

// Config is what a Granter stands on.
type Config struct {
	Term         uint64 // the term it serves: the result of its own Epoch command
	Clock        clock.Granter
	Quorum       Quorum
	Apply        func(entry []byte, timeout time.Duration) raft.ApplyFuture
	ConfirmLimit time.Duration // longest confirm round
	// Ended tells why a grant that is no longer live ended, if it is known. It
	// is called without any lock held. May be nil.
	Ended  func(token uint64) (lease.Reason, bool)
	Logger hclog.Logger // Defaults to none
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
	serving  atomic.Bool   // set by TakeOver; machine is set before it
	machine  *state.Machine

	mu       sync.Mutex
	closed   bool
	slots    map[string]*slot
	agenda   agenda
	arrivals uint64 // acquires so far, for the order of those who wait
}

// New makes a granter for cfg.Term. Until TakeOver it serves nothing.
func New(cfg Config) *Granter {
	if cfg.Logger == nil {
		cfg.Logger = hclog.NewNullLogger()
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	g := &Granter{
		cfg:    cfg,
		log:    cfg.Logger,
		ctx:    ctx,
		cancel: cancel,
		rearm:  make(chan struct{}, 1),
		slots:  map[string]*slot{},
	}
	g.proposer = newProposer(cfg.Term, cfg.Apply, g.End)
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
	if g.closed {
		return
	}
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
	g.serving.Store(true)
}

// Term returns the term served.
func (g *Granter) Term() uint64 { return g.cfg.Term }

// Over reports whether the term is over: End or Close was called, an entry of a
// later term was applied, or raft answered a proposal in a way that only one who
// no longer leads in this term answers.
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
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.proposer.close()
	g.confirm.close()
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
	if e.Term != term {
		return // void (rule 13): what an earlier granter decided says nothing about what this one does
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
			g.serveOwner(s)
		}
	case state.KindShorten:
		if s := g.slots[c.Name]; s != nil && s.live && s.token == c.Token {
			s.shorten = 0
			if r.Code == state.OK {
				s.record(r.Lease.TTL)
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
// or the term ends first it is withdrawn, or where it is too late for that the
// outcome is unknown.
func (g *Granter) propose(ctx context.Context, cmd state.Command) (state.Result, error) {
	type answer struct {
		r   state.Result
		err error
	}
	got := make(chan answer, 1)
	q := &proposal{cmds: []state.Command{cmd}, done: func(rs []state.Result, err error) {
		if err != nil {
			got <- answer{err: err}
			return
		}
		got <- answer{r: rs[0]}
	}}
	if !g.proposer.propose(q) {
		return state.Result{}, errOver
	}
	select {
	case a := <-got:
		return a.r, a.err
	case <-ctx.Done():
	case <-g.ctx.Done():
	}
	if g.proposer.withdraw(q) {
		return state.Result{}, errNotProposed
	}
	select {
	case a := <-got:
		return a.r, a.err
	default:
		return state.Result{}, g.cut(ctx)
	}
}

// cut says why nobody waits for an outcome any more.
func (g *Granter) cut(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return errCut
}

// stopped is the answer to a call that has done nothing yet and must not begin,
// nil while it may.
func (g *Granter) stopped(ctx context.Context) *pb.OperationResult {
	if g.Over() || !g.serving.Load() || ctx.Err() != nil {
		return notLeader()
	}
	return nil
}
