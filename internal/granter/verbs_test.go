package granter

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/raftlease/raftlease/internal/state"
	"github.com/raftlease/raftlease/lease"
	pb "github.com/raftlease/raftlease/transport/rpc/raftleasev1"
)

func TestGranter_AcquireOfAFreeNameTakesALargerToken(t *testing.T) {
	bubble(t, func(w *world) {
		last := uint64(0)
		for i := range 5 {
			owner := fmt.Sprint("x", i)
			token := w.got(w.do(acquireOf("a", owner, ttl)))
			if token <= last {
				t.Errorf("token: got %d after %d, want a larger one (G2)", token, last)
			}
			last = token
			w.done(w.do(releaseOf("a", owner, token)))
		}
	})
}

// The refusal tells the holder, and is confirmed (section 6, rule 4).
func TestGranter_HeldIsConfirmed(t *testing.T) {
	bubble(t, func(w *world) {
		token := w.got(w.do(acquireOf("a", "x", ttl)))
		time.Sleep(time.Second)
		before, writes := len(w.quorum.rounds()), w.writes()
		d := w.refused(w.do(acquireOf("a", "y", ttl)), pb.ErrorCode_ERROR_CODE_HELD)
		if d.Owner != "x" || d.Token != token || d.Remaining.AsDuration() > lease.Longer(ttl)-time.Second || d.Remaining.AsDuration() < ttl-2*time.Second {
			t.Errorf("held: got %v, want owner x with token %d for another 9s", d, token)
		}
		if len(w.quorum.rounds()) != before+1 || w.writes() != writes {
			t.Errorf("got %d rounds and %d entries, want one round and no entry", len(w.quorum.rounds())-before, w.writes()-writes)
		}
		w.quorum.set(func(q *fakeQuorum) { q.fail = errors.New("cut off") })
		w.outcome(w.do(acquireOf("a", "y", ttl)), pb.Outcome_OUTCOME_NOT_LEADER)
	})
}

// A refusal that is no longer true after the round is not given.
func TestGranter_AcquireLooksAgainAfterTheRound(t *testing.T) {
	bubble(t, func(w *world) {
		token := w.got(w.do(acquireOf("a", "x", ttl)))
		gate := make(chan struct{})
		w.quorum.set(func(q *fakeQuorum) { q.hold = gate })
		y := w.async(acquireOf("a", "y", ttl))
		w.pending(y)
		w.done(w.do(releaseOf("a", "x", token)))
		close(gate)
		w.got(<-y)
	})
}

// Two that race for a free name: the log decides, and its refusal needs no round.
func TestGranter_RaceForAFreeName(t *testing.T) {
	bubble(t, func(w *world) {
		rounds := len(w.quorum.rounds())
		x, y := w.async(acquireOf("a", "x", ttl)), w.async(acquireOf("a", "y", ttl))
		won, lost := <-x, <-y
		if won.Error != nil {
			won, lost = lost, won
		}
		token := w.got(won)
		if d := w.refused(lost, pb.ErrorCode_ERROR_CODE_HELD); d.Token != token || d.Owner != w.owner("a") || d.Remaining.AsDuration() <= 0 {
			t.Errorf("held: got %v, want the holder %q with token %d", d, w.owner("a"), token)
		}
		if n := len(w.quorum.rounds()) - rounds; n != 0 {
			t.Errorf("rounds: got %d, want none", n)
		}
	})
}

func TestGranter_AcquireByTheHolderKeepsTheToken(t *testing.T) {
	bubble(t, func(w *world) {
		token := w.got(w.do(acquireOf("a", "x", ttl)))
		time.Sleep(ttl - time.Second)
		before := w.writes()
		if again := w.got(w.do(acquireOf("a", "x", ttl))); again != token {
			t.Errorf("token: got %d, want %d", again, token)
		}
		if w.writes() != before {
			t.Errorf("entries: got %d, want none: it is like a renewal", w.writes()-before)
		}
		time.Sleep(ttl - time.Second)
		w.holds("a", "x")
		time.Sleep(2 * time.Second)
		if next := w.got(w.do(acquireOf("a", "x", ttl))); next <= token {
			t.Errorf("token after expiry: got %d, want one above %d", next, token)
		}
	})
}

// A longer acquire by the holder that finds the name broken gets the new grant.
func TestGranter_AcquireByTheHolderAfterABreakInTheLog(t *testing.T) {
	bubble(t, func(w *world) {
		token := w.got(w.do(acquireOf("a", "x", ttl)))
		w.log.set(once(state.KindAcquire, fate{before: func() { w.command(state.Command{Kind: state.KindBreak, Name: "a"}) }}))
		if got := w.got(w.do(acquireOf("a", "x", 2*ttl))); got != token+1 {
			t.Errorf("token: got %d, want %d: the first was broken", got, token+1)
		}
	})
}

// A grant taken for one process and asked for by another is no longer reclaimed
// for the end of one of them; that has to be recorded.
func TestGranter_AcquireFromAnotherSessionIsRecorded(t *testing.T) {
	bubble(t, func(w *world) {
		from := func(incarnation uint64) *pb.Operation {
			op := operation(acquireOf("a", "x", ttl))
			op.Session = &pb.Session{Node: "n", Disk: "d", Incarnation: incarnation}
			return op
		}
		token := w.got(w.do(from(1)))
		before := w.writes()
		w.got(w.do(from(1)))
		if w.writes() != before {
			t.Errorf("entries: got %d, want none from the same session", w.writes()-before)
		}
		if again := w.got(w.do(from(2))); again != token {
			t.Errorf("token: got %d, want %d", again, token)
		}
		if l, _ := w.log.machine.Get("a"); l.Session.Incarnation != 2 {
			t.Errorf("session: got %v, want incarnation 2", l.Session)
		}
	})
}

func TestGranter_ReclaimServesTheWaiters(t *testing.T) {
	bubble(t, func(w *world) {
		op := operation(acquireOf("a", "n/1", ttl))
		op.Session = &pb.Session{Node: "n", Disk: "d", Incarnation: 1}
		w.got(w.do(op))
		next := w.async(waitFor("a", "y", ttl))
		synctest.Wait()
		w.done(w.do(&pb.Operation{Op: &pb.Operation_Reclaim{Reclaim: &pb.Reclaim{Session: &pb.Session{Node: "n", Disk: "d", Incarnation: 2}}}}))
		w.got(<-next)
	})
}

func TestGranter_ReleaseFreesExactlyThatGrant(t *testing.T) {
	bubble(t, func(w *world) {
		token := w.got(w.do(acquireOf("a", "x", ttl)))
		before := len(w.quorum.rounds())
		for _, op := range []any{releaseOf("a", "x", token+1), releaseOf("a", "y", token), releaseOf("b", "x", token)} {
			w.done(w.do(op))
		}
		w.holds("a", "x")
		if n := len(w.quorum.rounds()) - before; n != 3 {
			t.Errorf("rounds: got %d, want 3: that there is nothing to release has to be true", n)
		}
		w.done(w.do(releaseOf("a", "x", token)))
		w.holds("a", "")
		w.quorum.set(func(q *fakeQuorum) { q.fail = errors.New("cut off") })
		w.outcome(w.do(releaseOf("a", "x", token)), pb.Outcome_OUTCOME_NOT_LEADER)
	})
}

// G7: data is written by the live token only.
func TestGranter_PutIsForTheLiveGrant(t *testing.T) {
	bubble(t, func(w *world) {
		token := w.got(w.do(acquireOf("a", "x", ttl)))
		w.done(w.do(&pb.PutRequest{Name: "a", Owner: "x", Token: token, Data: []byte("one")}))
		other := w.refused(w.do(&pb.PutRequest{Name: "a", Owner: "y", Token: token, Data: []byte("of y")}), pb.ErrorCode_ERROR_CODE_LOST)
		if other.Reason != string(lease.ReasonTaken) || other.NewOwner != "x" {
			t.Errorf("put by another owner: got %v, want taken by x", other)
		}
		w.done(w.do(releaseOf("a", "x", token)))
		d := w.refused(w.do(&pb.PutRequest{Name: "a", Owner: "x", Token: token, Data: []byte("two")}), pb.ErrorCode_ERROR_CODE_LOST)
		if d.Reason != string(lease.ReasonGone) {
			t.Errorf("reason: got %q, want gone", d.Reason)
		}
		r := w.do(&pb.GetRequest{Name: "a"})
		if l := r.GetGet().GetLease(); string(l.GetData()) != "one" || l.DataToken != token || l.Owner != "" || l.Remaining != nil {
			t.Errorf("record: got %v, want the data of token %d and no owner", l, token)
		}
		big := &pb.PutRequest{Name: "a", Owner: "x", Token: token, Data: make([]byte, lease.MaxDataLen+1)}
		w.refused(w.do(big), pb.ErrorCode_ERROR_CODE_INVALID)
	})
}

func TestGranter_BreakTellsWhoHadIt(t *testing.T) {
	bubble(t, func(w *world) {
		token := w.got(w.do(acquireOf("a", "x", ttl)))
		next := w.async(waitFor("a", "y", ttl))
		synctest.Wait()
		r := w.do(&pb.BreakRequest{Name: "a"})
		if b := r.GetBreak(); b.GetOwner() != "x" || b.GetToken() != token {
			t.Errorf("broken: got %v, want x with token %d", r, token)
		}
		w.got(<-next)
		w.refused(w.do(&pb.BreakRequest{Name: "b"}), pb.ErrorCode_ERROR_CODE_NOT_FOUND)
	})
}

// Reads are linearizable: they need a round that begins after them.
func TestGranter_ReadsAreConfirmed(t *testing.T) {
	bubble(t, func(w *world) {
		token := w.got(w.do(acquireOf("a/1", "x", ttl)))
		w.got(w.do(acquireOf("b/1", "y", ttl)))
		for _, op := range []any{&pb.GetRequest{Name: "a/1"}, &pb.ListRequest{Prefix: "a/"}} {
			before, sent := len(w.quorum.rounds()), time.Now()
			r := w.do(op)
			w.done(r)
			l := r.GetGet().GetLease()
			if r.GetList() != nil {
				if n := len(r.GetList().Leases); n != 1 {
					t.Fatalf("list: got %d leases, want 1", n)
				}
				l = r.GetList().Leases[0]
			}
			if l.Name != "a/1" || l.Owner != "x" || l.Token != token || l.Ttl.AsDuration() != ttl || l.Remaining.AsDuration() < ttl-time.Second {
				t.Errorf("record: got %v", l)
			}
			if starts := w.quorum.rounds(); len(starts) != before+1 || starts[before].Before(sent) {
				t.Errorf("rounds: got %d, want one begun after the read", len(starts)-before)
			}
		}
		w.refused(w.do(&pb.GetRequest{Name: "c"}), pb.ErrorCode_ERROR_CODE_NOT_FOUND)
		w.quorum.set(func(q *fakeQuorum) { q.promised = 2 })
		w.outcome(w.do(&pb.GetRequest{Name: "a/1"}), pb.Outcome_OUTCOME_NOT_LEADER)
		w.outcome(w.do(&pb.ListRequest{}), pb.Outcome_OUTCOME_NOT_LEADER)
	})
}

// A round is bounded in time.
func TestGranter_RoundIsBounded(t *testing.T) {
	bubble(t, func(w *world) {
		token := w.got(w.do(acquireOf("a", "x", ttl)))
		gate := make(chan struct{})
		defer close(gate)
		w.quorum.set(func(q *fakeQuorum) { q.hold = gate })
		begin := time.Now()
		w.outcome(w.do(renewOf("a", "x", token, ttl)), pb.Outcome_OUTCOME_NOT_LEADER)
		if d := time.Since(begin); d != limit {
			t.Errorf("answered after %v, want %v", d, limit)
		}
	})
}

func TestGranter_EntriesArePacked(t *testing.T) {
	bubble(t, func(w *world) {
		w.log.latency = 5 * time.Millisecond
		before := w.writes()
		var wg sync.WaitGroup
		for i := range 1000 {
			wg.Go(func() { w.got(w.do(acquireOf(fmt.Sprint("a", i), "x", ttl))) })
		}
		wg.Wait()
		if n := w.writes() - before; n > 20 {
			t.Errorf("entries for 1000 acquires at once: got %d, want 20 at most", n)
		}
		w.log.mu.Lock()
		defer w.log.mu.Unlock()
		if w.log.maxAhead > maxInFlight {
			t.Errorf("in flight: got %d, want %d at most", w.log.maxAhead, maxInFlight)
		}
		for _, a := range w.log.entries {
			if len(a.entry.Commands) > maxEntryCommands {
				t.Errorf("an entry has %d commands, want %d at most", len(a.entry.Commands), maxEntryCommands)
			}
		}
	})
}

func TestGranter_EntriesAreBoundedInBytes(t *testing.T) {
	bubble(t, func(w *world) {
		token := w.got(w.do(acquireOf("a", "x", ttl)))
		var wg sync.WaitGroup
		for range 64 {
			wg.Go(func() {
				w.done(w.do(&pb.PutRequest{Name: "a", Owner: "x", Token: token, Data: make([]byte, 30<<10)}))
			})
		}
		wg.Wait()
		for _, a := range w.log.history() {
			if n := len(state.EncodeEntry(a.entry)); n > maxEntryBytes+64 {
				t.Errorf("an entry has %d bytes, want about %d at most", n, maxEntryBytes)
			}
		}
	})
}

// What the state machine refuses is told with the field, and harms nothing (G8).
func TestGranter_RejectedCommandsNameTheField(t *testing.T) {
	bubble(t, func(w *world) {
		token := w.got(w.do(acquireOf("a", "x", ttl)))
		for name, op := range map[string]any{
			"no name": acquireOf("", "x", ttl), "no ttl": &pb.AcquireRequest{Name: "b", Owner: "x"},
			"long ttl": renewOf("a", "x", token, 11*365*24*time.Hour), "no name to break": &pb.BreakRequest{},
			"no session": &pb.Operation{Op: &pb.Operation_Reclaim{Reclaim: &pb.Reclaim{}}}, "nothing": &pb.Operation{},
		} {
			if d := w.refused(w.do(op), pb.ErrorCode_ERROR_CODE_INVALID); len(d.Faults) == 0 || d.Faults[0].Allowed == "" {
				t.Errorf("%s: got %v, want what is allowed", name, d)
			}
		}
		time.Sleep(lease.Longer(ttl) + time.Second)
		w.holds("a", "")
	})
}

func TestGranter_CallWhoseContextHasEndedDoesNothing(t *testing.T) {
	bubble(t, func(w *world) {
		token := w.got(w.do(acquireOf("a", "x", ttl)))
		ctx, cancel := context.WithCancel(w.Context())
		cancel()
		before, rounds := w.writes(), len(w.quorum.rounds())
		for _, op := range []any{acquireOf("b", "x", ttl), renewOf("a", "x", token, ttl), releaseOf("a", "x", token), waitFor("a", "y", ttl)} {
			w.outcome(w.doCtx(ctx, op), pb.Outcome_OUTCOME_NOT_LEADER)
		}
		synctest.Wait()
		if w.writes() != before || len(w.quorum.rounds()) != rounds {
			t.Errorf("got %d entries and %d rounds, want none", w.writes()-before, len(w.quorum.rounds())-rounds)
		}
	})
}
