package granter

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/raftlease/raftlease/internal/clock"
	"github.com/raftlease/raftlease/internal/state"
	"github.com/raftlease/raftlease/lease"
	pb "github.com/raftlease/raftlease/transport/rpc/raftleasev1"
)

// Rule 1: a renewal that comes during a round waits for the next one.
func TestGranter_RenewalIsConfirmedByARoundBegunAfterIt(t *testing.T) {
	bubble(t, func(w *world) {
		token := w.got(w.do(acquireOf("a", "x", ttl)))
		gate := make(chan struct{})
		w.quorum.set(func(q *fakeQuorum) { q.hold = gate })
		first := w.async(renewOf("a", "x", token, ttl))
		synctest.Wait()
		time.Sleep(time.Millisecond)
		sent := time.Now()
		second := w.async(renewOf("a", "x", token, ttl))
		w.pending(second)
		time.Sleep(time.Millisecond)
		close(gate)
		w.done(<-first)
		w.pending(second)
		w.done(<-second)
		starts := w.quorum.rounds()
		if last := starts[len(starts)-1]; len(starts) != 2 || last.Before(sent) {
			t.Errorf("rounds began at %v, want two and the last not before %v", starts, sent)
		}
	})
}

// Rule 1, G3: a voter that promises a later term while the round is under way
// makes the renewal fail.
func TestGranter_RenewalFailsWhenALaterTermWasPromised(t *testing.T) {
	bubble(t, func(w *world) {
		token := w.got(w.do(acquireOf("a", "x", ttl)))
		w.quorum.set(func(q *fakeQuorum) { q.promised = 2 })
		w.outcome(w.do(renewOf("a", "x", token, ttl)), pb.Outcome_OUTCOME_NOT_LEADER)
	})
}

// Rules 5 and 7, G3: the deadline counts from the renewal, with the drift, and
// is moved before anything is sent.
func TestGranter_RenewedGrantLastsItsTTLFromTheRenewal(t *testing.T) {
	bubble(t, func(w *world) {
		token := w.got(w.do(acquireOf("a", "x", ttl)))
		time.Sleep(ttl - time.Millisecond) // so short before the end that the round passes it
		sent := time.Now()
		w.done(w.do(renewOf("a", "x", token, ttl)))
		next := w.got(w.do(waitFor("a", "y", ttl)))
		if gone := time.Since(sent); gone < lease.Longer(ttl) || gone > lease.Longer(ttl)+100*time.Millisecond {
			t.Errorf("the name was granted again %v after the renewal, want %v at least", gone, lease.Longer(ttl))
		}
		if next <= token {
			t.Errorf("token: got %d after %d, want a larger one (G2)", next, token)
		}
	})
}

// Rule 7: the granter counts the drift.
func TestGranter_DeadlineHasRoomForDrift(t *testing.T) {
	bubble(t, func(w *world) {
		w.got(w.do(acquireOf("a", "x", time.Hour)))
		granted := w.log.history()[w.writes()-1].at
		time.Sleep(time.Hour + time.Hour/1000 - time.Millisecond)
		w.holds("a", "x")
		time.Sleep(50 * time.Millisecond)
		w.holds("a", "")
		if es, _ := w.log.commands(state.KindExpire); len(es) != 1 {
			t.Errorf("expiries %v after %v, want one", es, time.Since(granted))
		}
	})
}

// G3: a granter whose clock runs slow only makes grants longer.
func TestGranter_SlowClockMakesGrantsLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.clock = rated(clock.Monotonic(), 0.5)
		w.lead("n1", 1)
		w.got(w.do(acquireOf("a", "x", ttl)))
		time.Sleep(2*ttl - time.Millisecond)
		w.holds("a", "x")
		time.Sleep(ttl / 10)
		w.holds("a", "")
	})
}

func rated(c clock.Granter, rate float64) clock.Granter {
	return func() time.Duration { return time.Duration(float64(c()) * rate) }
}

func TestGranter_RenewalsWriteNothingToTheLog(t *testing.T) {
	bubble(t, func(w *world) {
		token := w.got(w.do(acquireOf("a", "x", ttl)))
		before := w.writes()
		for range 10_000 {
			w.done(w.do(renewOf("a", "x", token, ttl)))
		}
		if got := w.writes(); got != before {
			t.Errorf("entries: got %d after 10000 renewals, want %d as before", got, before)
		}
		w.holds("a", "x")
	})
}

func TestGranter_ManyRenewalsShareARound(t *testing.T) {
	bubble(t, func(w *world) {
		tokens := make([]uint64, 1000)
		for i := range tokens {
			tokens[i] = w.got(w.do(acquireOf(fmt.Sprint("a", i), "x", time.Minute)))
		}
		before := len(w.quorum.rounds())
		var wg sync.WaitGroup
		for i, token := range tokens {
			wg.Go(func() { w.done(w.do(renewOf(fmt.Sprint("a", i), "x", token, time.Minute))) })
		}
		wg.Wait()
		if n := len(w.quorum.rounds()) - before; n < 1 || n > 3 {
			t.Errorf("rounds for 1000 renewals at once: got %d, want 1 to 3", n)
		}
	})
}

func TestGranter_LongerRenewalIsRecordedFirst(t *testing.T) {
	bubble(t, func(w *world) {
		token := w.got(w.do(acquireOf("a", "x", ttl)))
		rounds := len(w.quorum.rounds())
		w.done(w.do(renewOf("a", "x", token, 6*ttl)))
		if l, _ := w.log.machine.Get("a"); l.TTL != 6*ttl {
			t.Errorf("recorded ttl: got %v, want %v", l.TTL, 6*ttl)
		}
		if n := len(w.quorum.rounds()); n != rounds {
			t.Errorf("rounds: got %d, want %d: the commit is the proof", n, rounds)
		}
		time.Sleep(6 * ttl)
		w.holds("a", "x")
	})
}

// Rule 10: a refresh through the log extends when it is proposed, so that no
// expiry is decided that would follow it in the log.
func TestGranter_RefreshExtendsWhenItIsProposed(t *testing.T) {
	for name, op := range map[string]func(token uint64) any{
		"longer renewal":           func(token uint64) any { return renewOf("a", "x", token, 2*ttl) },
		"acquire by its own owner": func(uint64) any { return acquireOf("a", "x", 2*ttl) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(w *world) {
				token := w.got(w.do(acquireOf("a", "x", ttl)))
				gate := make(chan struct{})
				w.log.set(func(state.Entry) fate { return fate{hold: gate} })
				answer := w.async(op(token))
				time.Sleep(2*ttl - time.Second) // its old deadline is over
				w.pending(answer)
				close(gate)
				r := <-answer
				w.done(r)
				time.Sleep(time.Second)
				w.holds("a", "x")
				if es, _ := w.log.commands(state.KindExpire); len(es) != 0 {
					t.Errorf("expiries %v, want none", es)
				}
			})
		})
	}
}

// Rule 5: what the log did during the round decides.
func TestGranter_RenewalLooksAgainAfterTheRound(t *testing.T) {
	bubble(t, func(w *world) {
		token := w.got(w.do(acquireOf("a", "x", ttl)))
		gate := make(chan struct{})
		w.quorum.set(func(q *fakeQuorum) { q.hold = gate })
		renewal := w.async(renewOf("a", "x", token, ttl))
		w.pending(renewal)
		w.command(state.Command{Kind: state.KindBreak, Name: "a"})
		w.got(w.do(acquireOf("a", "y", ttl)))
		close(gate)
		d := w.refused(<-renewal, pb.ErrorCode_ERROR_CODE_LOST)
		if d.NewOwner != "y" || lease.Reason(d.Reason) != lease.ReasonTaken {
			t.Errorf("lost: got %v, want taken by y", d)
		}
	})
}

func TestGranter_RenewalOfWhatIsNotLiveIsLost(t *testing.T) {
	bubble(t, func(w *world) {
		token := w.got(w.do(acquireOf("a", "x", ttl)))
		for name, op := range map[string]*pb.RenewRequest{
			"another token": renewOf("a", "x", token+1, ttl),
			"another owner": renewOf("a", "y", token, ttl),
			"another name":  renewOf("b", "x", token, ttl),
		} {
			before := len(w.quorum.rounds())
			d := w.refused(w.do(op), pb.ErrorCode_ERROR_CODE_LOST)
			if d.Name != op.Name || d.Owner != op.Owner || d.Token != op.Token {
				t.Errorf("%s: got %v, want the grant that was asked for", name, d)
			}
			if len(w.quorum.rounds()) == before {
				t.Errorf("%s: refused without a round", name)
			}
		}
		w.quorum.set(func(q *fakeQuorum) { q.fail = errors.New("cut off") })
		w.outcome(w.do(renewOf("a", "x", token+1, ttl)), pb.Outcome_OUTCOME_NOT_LEADER)
	})
}
