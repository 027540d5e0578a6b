package demo

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/raftlease/raftlease"
	"github.com/raftlease/raftlease/lease"
)

// worker does the job while it holds the lease, and reports what it believes.
type worker struct {
	part   Part
	node   *raftlease.Node
	report func(report)

	mu      sync.Mutex
	seq     uint64
	waiting map[uint64]chan bool // writes without an answer
}

// run competes for the job until ctx ends or the node closes.
func (w *worker) run(ctx context.Context) error {
	job := lease.Job{Name: w.part.Lease, Owner: w.node.JobOwner(), TTL: w.part.TTL, Events: w.event}
	return lease.RunLoop(ctx, w.node, job, w.hold)
}

// hold is the job: it writes to the resource at every tick, under the token of
// its grant, and looks at the grant right before.
func (w *worker) hold(ctx context.Context, g lease.Grant) error {
	w.report(report{Kind: reportHeld, At: now(), Token: g.Token, Until: deadline(g)})
	ticks := time.NewTicker(w.part.Tick)
	defer ticks.Stop()
	for {
		at := now() // before the check, so that it holds for this moment
		if err := g.Check(); err != nil {
			return w.over(g, err)
		}
		w.write(ctx, report{At: at, Token: g.Token})
		select {
		case <-ticks.C:
		case <-ctx.Done():
			return w.over(g, context.Cause(ctx))
		}
	}
}

// over ends the job.
func (w *worker) over(g lease.Grant, why error) error {
	told := why.Error()
	if lost := (*lease.LostError)(nil); errors.As(why, &lost) {
		told = "its grant is over, " + string(lost.Reason)
	}
	w.report(report{Kind: reportEnded, At: now(), Token: g.Token, Why: told})
	return nil
}

// writeLate writes as a worker does that was frozen between its check and its
// act (G7).
func (w *worker) writeLate(token uint64) {
	w.report(report{Kind: reportWrite, At: now(), Token: token, Late: true})
}

// write asks the resource and waits for its answer.
func (w *worker) write(ctx context.Context, r report) {
	answer := make(chan bool, 1)
	w.mu.Lock()
	w.seq++
	r.Kind, r.Seq = reportWrite, w.seq
	w.waiting[r.Seq] = answer
	w.mu.Unlock()
	w.report(r)
	select {
	case <-answer:
	case <-ctx.Done():
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.waiting, r.Seq)
}

func (w *worker) answered(seq uint64, good bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if answer := w.waiting[seq]; answer != nil {
		answer <- good
		delete(w.waiting, seq)
	}
}

// event reports what happens to the hold beside the job.
func (w *worker) event(e lease.HoldEvent) {
	switch e.Kind {
	case lease.HoldRenewed:
		w.report(report{Kind: reportRenewed, At: now(), Token: e.Grant.Token, Until: deadline(e.Grant)})
	case lease.HoldJeopardy:
		w.report(report{Kind: reportJeopardy, At: now(), Token: e.Grant.Token, Left: e.Remaining, Why: e.Err.Error()})
	}
}

// blur is how much earlier than it is a deadline may be reported.
const blur = time.Millisecond

// deadline returns the reading of now at which g is over, or one up to blur
// before: two clocks are read, and the process may be held up in between.
func deadline(g lease.Grant) time.Duration {
	for {
		before := now()
		left := g.Remaining()
		if now()-before < blur {
			return before + left
		}
	}
}
