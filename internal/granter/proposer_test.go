package granter

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/raftlease/raftlease/internal/state"
)

// What is queued when raft has said that the term is over is not given to it: it
// may lead again, in another term.
func TestProposer_NothingFollowsTheEndOfTheTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		applied, over := 0, 0
		p := newProposer(1, func([]byte, time.Duration) raft.ApplyFuture {
			applied++
			done := make(chan struct{})
			close(done)
			return &fakeFuture{done: done, err: raft.ErrNotLeader}
		}, func() { over++ })
		t.Cleanup(p.close)
		for range 3 {
			got := make(chan error, 1)
			q := &proposal{cmds: []state.Command{{Kind: state.KindEpoch}}, done: func(_ []state.Result, err error) { got <- err }}
			if !p.propose(q) {
				t.Fatal("propose: got refused, want taken")
			}
			if err := <-got; !errors.Is(err, errNotProposed) {
				t.Errorf("got %v, want %v", err, errNotProposed)
			}
			synctest.Wait()
			if p.withdraw(q) {
				t.Error("withdraw of what has an outcome: got true, want false")
			}
		}
		if applied != 1 || over != 1 {
			t.Errorf("got %d entries and told %d times that the term is over, want 1 and 1", applied, over)
		}
	})
}

// An answer of the state machine that is no result is an unknown outcome.
func TestProposer_StrangeAnswersAreUnknown(t *testing.T) {
	done := make(chan struct{})
	close(done)
	for name, answer := range map[string]any{"error": errors.New("strange"), "nothing": nil, "number": 1} {
		if _, err := outcome(&fakeFuture{done: done, result: answer}); err == nil || errors.Is(err, errNotProposed) {
			t.Errorf("%s: got %v, want an error of an unknown outcome", name, err)
		}
	}
}
