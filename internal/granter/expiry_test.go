package granter

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/raftlease/raftlease/internal/state"
	"github.com/raftlease/raftlease/lease"
	pb "github.com/raftlease/raftlease/transport/rpc/raftleasev1"
)

// Rules 4 and 12: when the deadline has passed nothing is free before the
// Expire is committed, and a renewal waits for the outcome, which is lost.
func TestGranter_ExpiryInFlightDecidesTheRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.ended = func(token uint64) (lease.Reason, bool) { return lease.ReasonExpired, token == 1 }
		w.lead("n1", 1)
		token := w.got(w.do(acquireOf("a", "x", ttl)))
		gate := make(chan struct{})
		w.log.set(once(state.KindExpire, fate{hold: gate}))
		time.Sleep(2 * ttl)
		w.holds("a", "x") // rule 12
		renewal := w.async(renewOf("a", "x", token, ttl))
		longer := w.async(renewOf("a", "x", token, 3*ttl))
		other := w.async(acquireOf("a", "y", ttl))
		synctest.Wait()
		rounds := len(w.quorum.rounds())
		time.Sleep(ttl)
		if n := len(w.quorum.rounds()); n != rounds {
			t.Errorf("rounds while the expiry is in flight: got %d, want none", n-rounds)
		}
		w.pending(renewal)
		w.pending(longer)
		w.pending(other)
		close(gate)
		for _, c := range []<-chan *pb.OperationResult{renewal, longer} {
			if d := w.refused(<-c, pb.ErrorCode_ERROR_CODE_LOST); d.Reason != string(lease.ReasonExpired) && d.Reason != string(lease.ReasonTaken) {
				t.Errorf("reason: got %q, want expired or taken", d.Reason)
			}
		}
		w.got(<-other)
	})
}

// Rule 4 during a round: the deadline cannot pass then, because it moved first;
// but an expiry may be under way when the round ends.
func TestGranter_RenewalAnswersNothingWhileAnExpiryIsInFlight(t *testing.T) {
	bubble(t, func(w *world) {
		token := w.got(w.do(acquireOf("a", "x", time.Second)))
		gate := make(chan struct{})
		w.quorum.set(func(q *fakeQuorum) { q.hold = gate })
		w.leader().confirm.limit = time.Hour
		renewal := w.async(renewOf("a", "x", token, time.Second))
		expiry := make(chan struct{})
		w.log.set(once(state.KindExpire, fate{hold: expiry}))
		time.Sleep(2 * time.Second) // the renewed deadline has passed during the round
		close(gate)
		time.Sleep(time.Second)
		w.pending(renewal)
		close(expiry)
		w.refused(<-renewal, pb.ErrorCode_ERROR_CODE_LOST)
	})
}

// Rules 9 and 10: an expiry names token and revision, and one that a refresh has
// overtaken in the log is void; a renewal that waited then succeeds.
func TestGranter_RenewalSucceedsWhenTheExpiryWasVoid(t *testing.T) {
	bubble(t, func(w *world) {
		token := w.got(w.do(acquireOf("a", "x", ttl)))
		l, _ := w.log.machine.Get("a")
		gate := make(chan struct{})
		w.log.set(once(state.KindExpire, fate{hold: gate, before: func() {
			// As if it had been ahead of the Expire in raft's queue.
			w.command(state.Command{Kind: state.KindRenew, Name: "a", Owner: "x", Token: token, TTL: ttl})
		}}))
		time.Sleep(lease.Longer(ttl) + time.Second)
		renewal := w.async(renewOf("a", "x", token, ttl))
		w.pending(renewal)
		close(gate)
		w.done(<-renewal)
		es, rs := w.log.commands(state.KindExpire)
		want := state.End{Name: "a", Token: token, Revision: l.Revision}
		if len(es) != 1 || len(es[0].Ends) != 1 || es[0].Ends[0] != want || len(rs[0].Ended) != 0 {
			t.Errorf("expiries: got %v ending %v, want one of %v ending nothing", es, rs, want)
		}
		time.Sleep(ttl - time.Second)
		w.holds("a", "x")
	})
}

// Case 6: an expiry whose entry failed is proposed again; nothing waits for
// ever.
func TestGranter_FailedExpireIsTriedAgain(t *testing.T) {
	for name, it := range map[string]fate{
		"queue full":      {refuse: raft.ErrEnqueueTimeout},
		"transfer":        {refuse: raft.ErrLeadershipTransferInProgress},
		"unknown outcome": {fail: errors.New("strange")},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(w *world) {
				token := w.got(w.do(acquireOf("a", "x", ttl)))
				waiter := w.async(waitFor("a", "y", ttl))
				time.Sleep(ttl)
				w.log.set(once(state.KindExpire, it))
				time.Sleep(20 * time.Millisecond)
				w.refused(w.do(renewOf("a", "x", token, ttl)), pb.ErrorCode_ERROR_CODE_LOST)
				if r := <-waiter; it.fail == nil {
					w.got(r)
				} else {
					w.outcome(r, pb.Outcome_OUTCOME_UNKNOWN)
				}
			})
		})
	}
}

// An expiry that failed, and was then overtaken by a refresh, is not proposed
// again and holds up no renewal.
func TestGranter_FailedExpireIsForgottenAfterARefresh(t *testing.T) {
	bubble(t, func(w *world) {
		token := w.got(w.do(acquireOf("a", "x", ttl)))
		w.log.set(once(state.KindExpire, fate{refuse: raft.ErrEnqueueTimeout}))
		time.Sleep(lease.Longer(ttl) + time.Millisecond)
		synctest.Wait()
		// Without wait it goes to the log behind the expiry, which is not there.
		if got := w.got(w.do(acquireOf("a", "x", ttl))); got != token {
			t.Fatalf("token: got %d, want %d: it never expired", got, token)
		}
		w.done(w.do(renewOf("a", "x", token, ttl)))
		time.Sleep(ttl - time.Second)
		w.done(w.do(renewOf("a", "x", token, ttl)))
		w.holds("a", "x")
	})
}

func TestGranter_OneEntryEndsAllThatAreDue(t *testing.T) {
	bubble(t, func(w *world) {
		names := []string{"a", "b", "c"}
		for _, n := range names {
			w.got(w.do(acquireOf(n, "x", ttl)))
		}
		w.lead("n2", 2) // gives all the same deadline
		before := w.writes()
		time.Sleep(lease.Longer(ttl) + 10*time.Millisecond)
		for _, n := range names {
			w.holds(n, "")
		}
		if got := w.writes() - before; got != 1 {
			t.Errorf("entries: got %d, want 1", got)
		}
	})
}

func TestGranter_ManyThatAreDueEndInSeveralEntries(t *testing.T) {
	bubble(t, func(w *world) {
		for i := range 3 * maxEnds {
			w.command(state.Command{Kind: state.KindAcquire, Name: string(rune('0' + i)), Owner: "x", TTL: ttl})
		}
		time.Sleep(lease.Longer(ttl) + time.Second)
		if n := w.log.machine.Live(); n != 0 {
			t.Errorf("live: got %d, want 0", n)
		}
		for _, a := range w.log.history() {
			for _, c := range a.entry.Commands {
				if len(c.Ends) > maxEntryCommands {
					t.Errorf("a command ends %d grants, want at most %d", len(c.Ends), maxEntryCommands)
				}
			}
		}
		if g := w.leader(); len(g.slots) != 0 || len(g.agenda) != 0 {
			t.Errorf("memory: got %d slots and %d on the agenda, want none", len(g.slots), len(g.agenda))
		}
	})
}

// End wakes a renewal that waits for an expiry.
func TestGranter_EndWakesARenewalThatWaitsForAnExpiry(t *testing.T) {
	bubble(t, func(w *world) {
		token := w.got(w.do(acquireOf("a", "x", ttl)))
		gate := make(chan struct{})
		w.log.set(once(state.KindExpire, fate{hold: gate}))
		time.Sleep(2 * ttl)
		renewal := w.async(renewOf("a", "x", token, ttl))
		w.pending(renewal)
		w.leader().End()
		w.outcome(<-renewal, pb.Outcome_OUTCOME_NOT_LEADER)
		close(gate)
	})
}

// A renewal that gives up while it waits for an expiry has done nothing.
func TestGranter_RenewalGivesUpWaitingForAnExpiry(t *testing.T) {
	bubble(t, func(w *world) {
		token := w.got(w.do(acquireOf("a", "x", ttl)))
		gate := make(chan struct{})
		defer close(gate)
		w.log.set(once(state.KindExpire, fate{hold: gate}))
		time.Sleep(2 * ttl)
		ctx, cancel := context.WithTimeout(w.Context(), time.Second)
		defer cancel()
		w.outcome(w.doCtx(ctx, renewOf("a", "x", token, ttl)), pb.Outcome_OUTCOME_NOT_LEADER)
	})
}
