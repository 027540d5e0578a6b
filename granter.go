package raftlease

import (
	"fmt"
	"time"

	"github.com/hashicorp/raft"

	"github.com/raftlease/raftlease/internal/granter"
	"github.com/raftlease/raftlease/internal/state"
)

const (
	confirmLimit  = time.Second           // of one confirm round
	epochTimeout  = time.Second           // to get the Epoch entry into raft's queue
	takeOverPause = 50 * time.Millisecond // between two tries to take over
)

// lead keeps a granter for as long as raft leads, a new one for every term.
// raft's channel tells only its latest edge, so that a leadership lost and won
// again may look like nothing; what counts is the term (case 27).
func (m *member) lead() {
	retry := time.NewTimer(0)
	defer retry.Stop()
	var g *granter.Granter
	for {
		var over <-chan struct{}
		if g != nil {
			over = g.Done()
		}
		select {
		case <-m.raft.Load().LeaderCh():
		case <-over:
		case <-retry.C:
		case <-m.ctx.Done():
			m.retire(g)
			return
		}
		r := m.raft.Load()
		if g != nil && !g.Over() && r.State() == raft.Leader && r.CurrentTerm() == g.Term() {
			continue
		}
		m.retire(g)
		g = nil
		if r.State() != raft.Leader {
			continue
		}
		var err error
		if g, err = m.takeOver(r); err != nil {
			m.n.log.Debug("take over", "err", err)
			retry.Reset(takeOverPause)
		}
	}
}

// takeOver proposes Epoch and, once that is applied, makes a granter for the
// term it tells. Nothing is served before: the state may lack what an earlier
// leader acknowledged (rule 3).
func (m *member) takeOver(r *raft.Raft) (*granter.Granter, error) {
	f := r.Apply(state.EncodeEntry(state.Entry{Commands: []state.Command{{Kind: state.KindEpoch}}}), epochTimeout)
	if err := f.Error(); err != nil {
		return nil, fmt.Errorf("propose epoch: %w", err)
	}
	results, ok := f.Response().([]state.Result)
	if !ok || len(results) != 1 {
		return nil, fmt.Errorf("propose epoch: state machine answered %v", f.Response())
	}
	g := granter.New(granter.Config{
		Term:         results[0].Term,
		Clock:        m.n.on.Granter,
		Quorum:       m.quorum(),
		Apply:        r.Apply,
		ConfirmLimit: confirmLimit,
		Ended:        m.fsm.events.ended,
		Logger:       m.n.log.Named("granter"),
	})
	m.fsm.follow(g)
	m.leading.Store(g)
	m.n.log.Info("serving as leader", "term", g.Term())
	m.broadcast()
	return g, nil
}

// retire ends g and waits for what it started.
func (m *member) retire(g *granter.Granter) {
	if g == nil {
		return
	}
	m.leading.Store(nil)
	g.Close()
	m.n.log.Info("no longer serving as leader", "term", g.Term())
	m.broadcast()
}

// serving returns the granter while this node leads, else nil.
func (m *member) serving() *granter.Granter {
	if g := m.leading.Load(); g != nil && !g.Over() {
		return g
	}
	return nil
}
