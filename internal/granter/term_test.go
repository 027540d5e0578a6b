package granter

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/raftlease/raftlease/internal/state"
	"github.com/raftlease/raftlease/lease"
	pb "github.com/raftlease/raftlease/transport/rpc/raftleasev1"
)

// Rule 2, G3: a take-over gives every grant a fresh full ttl, the recorded one.
func TestGranter_TakeOverGivesAFreshFullTTL(t *testing.T) {
	bubble(t, func(w *world) {
		w.got(w.do(acquireOf("a", "x", ttl)))
		w.got(w.do(acquireOf("b", "x", 3*ttl)))
		time.Sleep(ttl - time.Second)
		w.lead("n2", 2)
		time.Sleep(lease.Longer(ttl) - time.Millisecond)
		w.holds("a", "x")
		time.Sleep(20 * time.Millisecond)
		w.holds("a", "")
		w.holds("b", "x")
		time.Sleep(2 * ttl)
		w.holds("b", "x")
		time.Sleep(ttl)
		w.holds("b", "")
	})
}

// Rule 3: a granter serves nothing before it has taken over.
func TestGranter_ServesNothingBeforeTakeOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.g = w.build("n1", 1)
		w.log.leader, w.log.term = "n1", 1
		for _, op := range []any{&pb.GetRequest{Name: "a"}, renewOf("a", "x", 1, ttl), acquireOf("a", "x", ttl), &pb.ListRequest{}} {
			w.outcome(w.do(op), pb.Outcome_OUTCOME_NOT_LEADER)
		}
		if n := w.writes(); n != 0 {
			t.Errorf("entries: got %d, want none", n)
		}
	})
}

// Case 1, G3: a leader that was deposed while its log hung expires nothing when
// it goes on, and answers nothing.
func TestGranter_DeposedLeaderExpiresNothing(t *testing.T) {
	bubble(t, func(w *world) {
		token := w.got(w.do(acquireOf("a", "x", ttl)))
		old := w.leader()
		time.Sleep(ttl - time.Second)
		w.lead("n2", 2)
		for range 5 { // past the deadline that the old leader knows
			time.Sleep(time.Second)
			w.done(w.do(renewOf("a", "x", token, ttl)))
		}
		w.holds("a", "x")
		w.outcome(old.Do(w.Context(), operation(renewOf("a", "x", token, ttl))), pb.Outcome_OUTCOME_NOT_LEADER)
		if !old.Over() {
			t.Error("the old granter's term: got not over, want over after raft refused its entry")
		}
	})
}

// Rule 13, case 27: the same node is deposed and leads again while an entry of
// its first term hangs. The entry is void, and whoever asked is told that
// nothing was done.
func TestGranter_EntryOfAnEarlierTermIsVoid(t *testing.T) {
	bubble(t, func(w *world) {
		token := w.got(w.do(acquireOf("a", "x", ttl)))
		gate := make(chan struct{})
		w.log.set(once(state.KindAcquire, fate{hold: gate}))
		late := w.async(acquireOf("b", "x", ttl))
		put := w.async(&pb.PutRequest{Name: "a", Owner: "x", Token: token, Data: []byte("late")})
		w.pending(late)
		old := w.leader()
		w.lead("n2", 2)
		w.lead("n1", 3)
		close(gate)
		w.outcome(<-late, pb.Outcome_OUTCOME_NOT_LEADER)
		w.outcome(<-put, pb.Outcome_OUTCOME_NOT_LEADER)
		w.holds("b", "")
		if !old.Over() {
			t.Error("old granter: got not over, want over")
		}
		w.got(w.do(acquireOf("b", "x", ttl)))
	})
}

// Rules 4 and 13: a void Expire of an earlier term is not taken for the outcome
// of the one that this granter has under way.
func TestGranter_VoidExpireOfAnEarlierTermSettlesNothing(t *testing.T) {
	bubble(t, func(w *world) {
		token := w.got(w.do(acquireOf("a", "x", ttl)))
		w.lead("n1", 3)
		gate := make(chan struct{})
		w.log.set(once(state.KindExpire, fate{hold: gate}))
		time.Sleep(lease.Longer(ttl) + time.Millisecond)
		renewal := w.async(renewOf("a", "x", token, ttl))
		w.pending(renewal)
		l, _ := w.log.machine.Get("a")
		w.log.mu.Lock()
		w.log.append(state.Entry{Term: 1, Commands: []state.Command{
			{Kind: state.KindExpire, Ends: []state.End{{Name: "a", Token: token, Revision: l.Revision}}}}})
		w.log.mu.Unlock()
		time.Sleep(time.Second)
		w.pending(renewal)
		close(gate)
		w.refused(<-renewal, pb.ErrorCode_ERROR_CODE_LOST)
	})
}

// A later term that is seen in the log ends the granter; whoever calls is told.
func TestGranter_LaterTermInTheLogEndsIt(t *testing.T) {
	bubble(t, func(w *world) {
		token := w.got(w.do(acquireOf("a", "x", ttl)))
		g := w.leader()
		begin := time.Now()
		w.log.mu.Lock()
		w.log.term = 2
		w.log.append(state.Entry{Term: 2, Commands: []state.Command{{Kind: state.KindEpoch}}})
		w.log.mu.Unlock()
		if <-g.Done(); !g.Over() || g.Term() != 1 {
			t.Errorf("over: got %v in term %d, want true in 1", g.Over(), g.Term())
		}
		if d := time.Since(begin); d != 0 {
			t.Errorf("over after %v, want at once", d)
		}
		for _, op := range []any{acquireOf("a", "x", ttl), renewOf("a", "x", token, ttl), releaseOf("a", "x", token)} {
			w.outcome(w.do(op), pb.Outcome_OUTCOME_NOT_LEADER)
		}
	})
}

// End wakes everybody: what is in the log's hands is unknown, the rest was not
// done (G6).
func TestGranter_EndWakesEverybody(t *testing.T) {
	bubble(t, func(w *world) {
		held := w.got(w.do(acquireOf("held", "x", ttl)))
		mine := w.got(w.do(acquireOf("mine", "x", ttl)))
		free := w.got(w.do(acquireOf("free", "x", ttl)))
		gate := make(chan struct{})
		w.log.set(func(state.Entry) fate { return fate{hold: gate} })
		w.quorum.set(func(q *fakeQuorum) { q.hold, q.deaf = gate, true })
		unknown := []<-chan *pb.OperationResult{}
		for _, op := range []any{
			acquireOf("new", "x", ttl), renewOf("mine", "x", mine, 2*ttl), releaseOf("free", "x", free),
			&pb.PutRequest{Name: "mine", Owner: "x", Token: mine}, &pb.BreakRequest{Name: "held"},
		} {
			unknown = append(unknown, w.async(op))
			synctest.Wait()
		}
		not := []<-chan *pb.OperationResult{
			w.async(waitFor("held", "y", ttl)), w.async(acquireOf("held", "y", ttl)), w.async(renewOf("held", "x", held, ttl)),
			w.async(renewOf("held", "y", 99, ttl)), w.async(releaseOf("held", "y", 99)), w.async(&pb.GetRequest{Name: "a"}), w.async(&pb.ListRequest{}),
			w.async(&pb.PutRequest{Name: "mine", Owner: "x", Token: mine}), // in no entry yet: four are under way
		}
		synctest.Wait()
		begin := time.Now()
		w.leader().End()
		for _, c := range not {
			w.outcome(<-c, pb.Outcome_OUTCOME_NOT_LEADER)
		}
		for i, c := range unknown {
			want := pb.Outcome_OUTCOME_UNKNOWN
			if i >= maxInFlight {
				want = pb.Outcome_OUTCOME_NOT_LEADER
			}
			w.outcome(<-c, want)
		}
		if d := time.Since(begin); d != 0 {
			t.Errorf("woken after %v, want at once", d)
		}
		close(gate)
	})
}

// Close with everything under way hangs on nothing and leaves no goroutine,
// which the bubble would report; and nothing can be begun after it.
func TestGranter_CloseWaitsForWhatItStarted(t *testing.T) {
	bubble(t, func(w *world) {
		token := w.got(w.do(acquireOf("a", "x", ttl)))
		w.log.set(func(state.Entry) fate { return fate{late: 100 * time.Millisecond, fail: raft.ErrLeadershipLost} })
		var wg sync.WaitGroup
		for _, op := range []any{
			acquireOf("b", "x", ttl), waitFor("a", "y", ttl), acquireOf("a", "y", ttl), renewOf("a", "x", token, ttl),
			renewOf("a", "x", token, 2*ttl), releaseOf("a", "x", token), &pb.ListRequest{},
		} {
			wg.Go(func() { w.do(op) })
		}
		time.Sleep(time.Millisecond)
		g := w.leader()
		var closers sync.WaitGroup
		for range 2 { // it is idempotent and may be called at once
			closers.Go(g.Close)
		}
		closers.Wait()
		wg.Wait()
		g.TakeOver(w.log.machine)
		w.outcome(w.do(renewOf("a", "x", token, ttl)), pb.Outcome_OUTCOME_NOT_LEADER)
		before := len(w.quorum.rounds())
		err := g.confirm.join(context.Background())
		synctest.Wait()
		if n := len(w.quorum.rounds()); err == nil || n != before {
			t.Errorf("a round after Close: got %v and %d rounds, want an error and none", err, n-before)
		}
	})
}

// G6: what raft says of an entry decides between not done and unknown.
func TestGranter_OutcomesByRaftsAnswer(t *testing.T) {
	for _, c := range []struct {
		name string
		it   fate
		want pb.Outcome
		over bool
	}{
		{"not the leader", fate{refuse: raft.ErrNotLeader}, pb.Outcome_OUTCOME_NOT_LEADER, true},
		{"queue full", fate{refuse: raft.ErrEnqueueTimeout}, pb.Outcome_OUTCOME_NOT_LEADER, false},
		{"leadership transfer", fate{refuse: raft.ErrLeadershipTransferInProgress}, pb.Outcome_OUTCOME_NOT_LEADER, false},
		{"leadership lost after commit", fate{fail: raft.ErrLeadershipLost}, pb.Outcome_OUTCOME_UNKNOWN, true},
		{"shutdown", fate{fail: raft.ErrRaftShutdown}, pb.Outcome_OUTCOME_UNKNOWN, true},
		{"aborted by a restore", fate{fail: raft.ErrAbortedByRestore}, pb.Outcome_OUTCOME_UNKNOWN, false},
	} {
		for kind, op := range map[string]any{
			"acquire": acquireOf("new", "x", ttl), "wait": waitFor("new", "x", ttl), "renew": renewOf("a", "x", 1, 2*ttl),
			"release": releaseOf("a", "x", 1), "put": &pb.PutRequest{Name: "a", Owner: "x", Token: 1}, "break": &pb.BreakRequest{Name: "a"},
			"reclaim": &pb.Operation{Op: &pb.Operation_Reclaim{Reclaim: &pb.Reclaim{Session: &pb.Session{Node: "n", Disk: "d", Incarnation: 2}}}},
		} {
			t.Run(c.name+"/"+kind, func(t *testing.T) {
				bubble(t, func(w *world) {
					w.got(w.do(acquireOf("a", "x", ttl)))
					w.log.set(func(state.Entry) fate { return c.it })
					w.outcome(w.do(op), c.want)
					synctest.Wait()
					if got := w.leader().Over(); got != c.over {
						t.Errorf("term over: got %v, want %v", got, c.over)
					}
				})
			})
		}
	}
}

// Case 12: each command whose answer was lost after the commit is repeated on
// the next leader, as if it had been executed once.
func TestGranter_RepeatedOnTheNextLeader(t *testing.T) {
	bubble(t, func(w *world) {
		repeat := func(op any) *pb.OperationResult {
			w.log.set(func(state.Entry) fate { return fate{fail: raft.ErrLeadershipLost} })
			w.outcome(w.do(op), pb.Outcome_OUTCOME_UNKNOWN)
			w.log.set(nil)
			w.lead("n1", w.leader().Term()+1)
			return w.do(op)
		}
		token := w.got(repeat(acquireOf("a", "x", ttl)))
		if token != 1 {
			t.Errorf("token: got %d, want 1: the grant whose answer was lost", token)
		}
		w.done(repeat(renewOf("a", "x", token, 2*ttl)))
		w.done(repeat(&pb.PutRequest{Name: "a", Owner: "x", Token: token, Data: []byte("d")}))
		w.done(repeat(releaseOf("a", "x", token)))
		w.holds("a", "")
		if got := w.got(w.do(acquireOf("a", "y", ttl))); got != 2 {
			t.Errorf("token of the next: got %d, want 2", got)
		}
	})
}
