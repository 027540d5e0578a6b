package granter

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/raftlease/raftlease/internal/state"
	"github.com/raftlease/raftlease/lease"
	pb "github.com/raftlease/raftlease/transport/rpc/raftleasev1"
)

func TestGranter_WaitersAreServedInTheOrderTheyCame(t *testing.T) {
	bubble(t, func(w *world) {
		token := w.got(w.do(acquireOf("a", "x", ttl)))
		var answers []<-chan *pb.OperationResult
		for i := range 5 {
			answers = append(answers, w.async(waitFor("a", fmt.Sprint("w", i), ttl)))
			synctest.Wait()
		}
		holder := "x"
		for i, c := range answers {
			before := w.writes()
			w.done(w.do(releaseOf("a", holder, token)))
			holder = fmt.Sprint("w", i)
			token = w.got(<-c)
			w.holds("a", holder)
			if n := w.writes() - before; n != 1 {
				t.Errorf("entries for a release and the next grant: got %d, want 1", n)
			}
			for _, later := range answers[i+1:] {
				w.pending(later)
			}
		}
	})
}

// A waiter that came while an acquire was under way does not overtake one that
// came before it and learns only then that it has to wait.
func TestGranter_WaiterThatLostTheRaceKeepsItsPlace(t *testing.T) {
	bubble(t, func(w *world) {
		gate := make(chan struct{})
		w.log.set(once(state.KindAcquire, fate{hold: gate}))
		x := w.async(acquireOf("a", "x", ttl))
		synctest.Wait()
		first := w.async(waitFor("a", "first", ttl)) // its Acquire is in the log behind x's
		synctest.Wait()
		w.log.set(once(state.KindAcquire, fate{late: time.Second}))
		close(gate)
		token := w.got(<-x)
		second := w.async(waitFor("a", "second", ttl))
		time.Sleep(2 * time.Second)
		w.pending(first)
		w.pending(second)
		w.done(w.do(releaseOf("a", "x", token)))
		w.got(<-first)
		w.pending(second)
	})
}

func TestGranter_ExpiryAndNextGrantShareAnEntry(t *testing.T) {
	bubble(t, func(w *world) {
		w.got(w.do(acquireOf("a", "x", ttl)))
		w.got(w.do(acquireOf("b", "x", ttl)))
		w.lead("n2", 2)
		a, b := w.async(waitFor("a", "y", ttl)), w.async(waitFor("b", "z", ttl))
		synctest.Wait()
		before := w.writes()
		w.got(<-a)
		w.got(<-b)
		if n := w.writes() - before; n != 1 {
			t.Errorf("entries for two expiries and two grants: got %d, want 1", n)
		}
	})
}

// G3: the time parked is told and is not counted: the grant lasts its ttl from
// when it was granted.
func TestGranter_ParkedTimeIsNotLeaseTime(t *testing.T) {
	bubble(t, func(w *world) {
		w.got(w.do(acquireOf("a", "x", ttl)))
		sent := time.Now()
		r := <-w.async(waitFor("a", "y", ttl))
		w.got(r)
		parked := r.GetAcquire().Parked.AsDuration()
		if parked < ttl-time.Second || parked > time.Since(sent) {
			t.Errorf("parked: got %v, want %v at most and about %v", parked, time.Since(sent), ttl)
		}
		if got := r.GetAcquire().Ttl.AsDuration(); got != ttl {
			t.Errorf("ttl: got %v, want %v", got, ttl)
		}
		w.got(w.do(waitFor("a", "z", ttl)))
		if until := lease.Shorter(parked) + lease.Shorter(ttl); time.Since(sent) < until {
			t.Errorf("granted again %v after y sent, but y believes for %v", time.Since(sent), until)
		}
	})
}

// What is granted at once was not parked.
func TestGranter_NotParkedWhenFree(t *testing.T) {
	bubble(t, func(w *world) {
		w.log.latency = time.Second
		r := w.do(waitFor("a", "x", ttl))
		w.got(r)
		if p := r.GetAcquire().Parked.AsDuration(); p != 0 {
			t.Errorf("parked: got %v, want 0: waiting for the commit is lease time", p)
		}
	})
}

// Case 19: a waiter whose ctx ended is never granted.
func TestGranter_WaiterThatLeftIsNotGranted(t *testing.T) {
	bubble(t, func(w *world) {
		token := w.got(w.do(acquireOf("a", "x", ttl)))
		ctx, cancel := context.WithCancel(w.Context())
		gone := w.asyncCtx(ctx, waitFor("a", "gone", ttl))
		synctest.Wait()
		next := w.async(waitFor("a", "next", ttl))
		synctest.Wait()
		cancel()
		w.outcome(<-gone, pb.Outcome_OUTCOME_NOT_LEADER)
		w.done(w.do(releaseOf("a", "x", token)))
		w.got(<-next)
		acquires, _ := w.log.commands(state.KindAcquire)
		for _, c := range acquires {
			if c.Owner == "gone" {
				t.Errorf("acquires: got one for the owner that left, want none")
			}
		}
	})
}

// Case 19: a waiter that left while its Acquire was under way has its grant
// ended at once, and the next one gets the name with the same entry.
func TestGranter_GrantOfAWaiterThatLeftIsEnded(t *testing.T) {
	for _, riding := range []bool{true, false} {
		t.Run(fmt.Sprint("parked ", riding), func(t *testing.T) {
			bubble(t, func(w *world) {
				var token uint64
				if riding {
					token = w.got(w.do(acquireOf("a", "x", ttl)))
				}
				ctx, cancel := context.WithCancel(w.Context())
				gate := make(chan struct{})
				gone := w.asyncCtx(ctx, waitFor("a", "gone", time.Hour))
				if riding {
					synctest.Wait()
					w.log.set(once(state.KindRelease, fate{hold: gate}))
					release := w.async(releaseOf("a", "x", token))
					defer func() { w.done(<-release) }()
				} else {
					w.log.set(once(state.KindAcquire, fate{hold: gate}))
				}
				synctest.Wait()
				cancel()
				w.outcome(<-gone, pb.Outcome_OUTCOME_UNKNOWN)
				var next <-chan *pb.OperationResult
				if riding {
					next = w.async(waitFor("a", "next", ttl))
				}
				synctest.Wait()
				close(gate)
				time.Sleep(100 * time.Millisecond)
				if riding {
					w.got(<-next)
				} else {
					w.holds("a", "")
				}
				if es, _ := w.log.commands(state.KindExpire); len(es) != 1 {
					t.Errorf("expiries: got %d, want one that ends the abandoned grant", len(es))
				}
			})
		})
	}
}

// The end of an abandoned grant is tried again when its entry fails.
func TestGranter_EndOfAnAbandonedGrantIsTriedAgain(t *testing.T) {
	bubble(t, func(w *world) {
		ctx, cancel := context.WithCancel(w.Context())
		gate := make(chan struct{})
		w.log.set(once(state.KindAcquire, fate{hold: gate}))
		gone := w.asyncCtx(ctx, acquireOf("a", "gone", time.Hour))
		synctest.Wait()
		cancel()
		w.outcome(<-gone, pb.Outcome_OUTCOME_UNKNOWN)
		w.log.set(once(state.KindExpire, fate{refuse: raft.ErrEnqueueTimeout}))
		close(gate)
		time.Sleep(time.Second)
		w.holds("a", "")
	})
}

// A grant whose caller left stays when the owner has claimed it by a repeat that
// was packed into the same entry, or that came when it was applied.
func TestGranter_ClaimedGrantIsNotTakenBack(t *testing.T) {
	for _, packed := range []bool{true, false} {
		t.Run(fmt.Sprint("packed ", packed), func(t *testing.T) {
			bubble(t, func(w *world) {
				ctx, cancel := context.WithCancel(w.Context())
				gate, told := make(chan struct{}), make(chan struct{})
				w.log.set(func(e state.Entry) fate {
					if e.Commands[0].Name == "a" && has(e, state.KindAcquire) {
						return fate{hold: gate, after: func() { <-told }}
					}
					return fate{hold: gate}
				})
				for i := range maxInFlight {
					if packed { // what comes now waits for one of these and is packed
						w.async(acquireOf(fmt.Sprint("b", i), "x", ttl))
						synctest.Wait()
					}
				}
				gone := w.asyncCtx(ctx, acquireOf("a", "x", ttl))
				var again <-chan *pb.OperationResult
				if packed {
					synctest.Wait()
					again = w.async(acquireOf("a", "x", ttl))
				}
				synctest.Wait()
				close(gate)
				time.Sleep(time.Second)
				cancel()
				w.outcome(<-gone, pb.Outcome_OUTCOME_UNKNOWN)
				if !packed {
					again = w.async(acquireOf("a", "x", ttl))
					time.Sleep(100 * time.Millisecond)
				}
				close(told)
				token := w.got(<-again)
				time.Sleep(ttl / 2)
				w.done(w.do(renewOf("a", "x", token, ttl)))
				if es, _ := w.log.commands(state.KindExpire); len(es) != 0 {
					t.Errorf("expiries: got %v, want none", es)
				}
			})
		})
	}
}

// Case 19: the answer was on its way when the caller left, so another message
// says so.
func TestGranter_AbandonedWait(t *testing.T) {
	const id = 77
	wait := &pb.Operation{Op: &pb.Operation_Acquire{Acquire: waitFor("a", "x", ttl)}, WaitId: id}
	abandon := func(id uint64) *pb.Operation {
		return &pb.Operation{Op: &pb.Operation_Abandon{Abandon: &pb.AbandonWait{Name: "a", WaitId: id}}}
	}
	for _, c := range []struct {
		name  string
		then  func(w *world, token uint64)
		ended bool
	}{
		{"its grant ends at once", func(w *world, _ uint64) { w.done(w.do(abandon(id))) }, true},
		{"said twice it does no more", func(w *world, _ uint64) { w.done(w.do(abandon(id))); w.done(w.do(abandon(id))) }, true},
		{"another wait's grant stays", func(w *world, _ uint64) { w.done(w.do(abandon(id + 1))) }, false},
		{"no wait's id names no grant", func(w *world, _ uint64) { w.done(w.do(abandon(0))) }, false},
		{"a grant that was renewed since stays", func(w *world, token uint64) {
			w.done(w.do(renewOf("a", "x", token, ttl)))
			w.done(w.do(abandon(id)))
		}, false},
		{"a grant that was acquired again stays", func(w *world, _ uint64) {
			w.got(w.do(acquireOf("a", "x", ttl)))
			w.done(w.do(abandon(id)))
		}, false},
		{"the next grant of the owner stays", func(w *world, token uint64) {
			w.done(w.do(releaseOf("a", "x", token)))
			w.got(w.do(acquireOf("a", "x", ttl)))
			w.done(w.do(abandon(id)))
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(w *world) {
				c.then(w, w.got(w.do(wait)))
				time.Sleep(ttl / 2)
				owner := "x"
				if c.ended {
					owner = ""
				}
				w.holds("a", owner)
			})
		})
	}
}

// A grant that came just when its caller's ctx ended is ended: the caller does
// not hear of it.
func TestGranter_GrantThatComesWithTheEndOfItsContextIsEnded(t *testing.T) {
	bubble(t, func(w *world) {
		ctx, cancel := context.WithCancel(w.Context())
		cancel()
		g := w.leader()
		for i := range 32 { // both are ready, and either may be seen first
			name := fmt.Sprint("a", i)
			r := w.command(state.Command{Kind: state.KindAcquire, Name: name, Owner: "x", TTL: ttl})
			wt := &waiter{name: name, owner: "x", ttl: ttl, answer: make(chan *pb.OperationResult, 1)}
			wt.reply(wt.granted(r.Lease.Token))
			w.outcome(g.await(ctx, wt), pb.Outcome_OUTCOME_UNKNOWN)
		}
		time.Sleep(time.Second)
		if n := w.log.machine.Live(); n != 0 {
			t.Errorf("live: got %d, want 0", n)
		}
	})
}

// A waiter that learns too late that another has the name finds it free by then,
// or its own.
func TestGranter_WaiterParksAfterTheNameHasChanged(t *testing.T) {
	for _, own := range []bool{false, true} {
		t.Run(fmt.Sprint("own ", own), func(t *testing.T) {
			bubble(t, func(w *world) {
				w.log.latency = time.Second
				x := w.async(acquireOf("a", "x", ttl))
				synctest.Wait()
				w.log.set(once(state.KindAcquire, fate{after: func() {
					w.command(state.Command{Kind: state.KindBreak, Name: "a"})
					if own {
						w.command(state.Command{Kind: state.KindAcquire, Name: "a", Owner: "y", TTL: ttl})
					}
				}}))
				y := w.async(waitFor("a", "y", ttl)) // behind x's
				first := w.got(<-x)
				begin := time.Now()
				if token := w.got(<-y); token != first+1 {
					t.Errorf("token: got %d, want %d", token, first+1)
				}
				if d := time.Since(begin); d > 3*time.Second {
					t.Errorf("granted after %v, want about 2s", d)
				}
			})
		})
	}
}

// When the acquire of a waiter does not enter the log the next one has its turn.
func TestGranter_NextWaiterHasItsTurnWhenAnOfferFails(t *testing.T) {
	bubble(t, func(w *world) {
		w.got(w.do(acquireOf("a", "x", ttl)))
		y := w.async(waitFor("a", "y", ttl))
		synctest.Wait()
		z := w.async(waitFor("a", "z", ttl))
		synctest.Wait()
		w.log.set(once(state.KindAcquire, fate{refuse: raft.ErrEnqueueTimeout}))
		w.command(state.Command{Kind: state.KindBreak, Name: "a"})
		w.outcome(<-y, pb.Outcome_OUTCOME_NOT_LEADER)
		w.got(<-z)
	})
}

// An acquire that was withdrawn before it left is not done.
func TestGranter_WithdrawnProposalNeverEntersTheLog(t *testing.T) {
	bubble(t, func(w *world) {
		held := w.got(w.do(acquireOf("held", "x", ttl)))
		waiter := w.async(waitFor("held", "y", ttl))
		gate := make(chan struct{})
		w.log.set(func(state.Entry) fate { return fate{hold: gate} })
		for i := range maxInFlight {
			w.async(acquireOf(fmt.Sprint("b", i), "x", ttl))
			synctest.Wait()
		}
		ctx, cancel := context.WithCancel(w.Context())
		answers := []<-chan *pb.OperationResult{
			w.asyncCtx(ctx, acquireOf("a", "x", ttl)), w.asyncCtx(ctx, renewOf("held", "x", held, 2*ttl)),
			w.asyncCtx(ctx, releaseOf("held", "x", held)),
		}
		synctest.Wait()
		cancel()
		for _, c := range answers {
			w.outcome(<-c, pb.Outcome_OUTCOME_NOT_LEADER)
		}
		w.log.set(nil)
		close(gate)
		time.Sleep(time.Second)
		w.holds("a", "")
		w.holds("held", "x")
		w.pending(waiter)
		w.done(w.do(releaseOf("held", "x", held)))
		w.got(<-waiter)
	})
}

func TestGranter_WaitersOfTheSameOwnerGetTheSameGrant(t *testing.T) {
	bubble(t, func(w *world) {
		token := w.got(w.do(acquireOf("a", "x", ttl)))
		first, second := w.async(waitFor("a", "y", ttl)), w.async(waitFor("a", "y", ttl))
		synctest.Wait()
		w.done(w.do(releaseOf("a", "x", token)))
		if a, b := w.got(<-first), w.got(<-second); a != b || a == token {
			t.Errorf("tokens: got %d and %d, want the same new one", a, b)
		}
	})
}

// A waiter whose own owner gets the name in another way is served too.
func TestGranter_WaiterIsServedWhenItsOwnerHasTheName(t *testing.T) {
	bubble(t, func(w *world) {
		w.got(w.do(acquireOf("a", "x", ttl)))
		y := w.async(waitFor("a", "y", ttl))
		z := w.async(waitFor("a", "z", ttl))
		synctest.Wait()
		w.command(state.Command{Kind: state.KindBreak, Name: "a"}) // offers to y, which comes second
		w.command(state.Command{Kind: state.KindAcquire, Name: "a", Owner: "z", TTL: ttl})
		token := w.got(<-z)
		w.pending(y)
		w.done(w.do(releaseOf("a", "z", token)))
		w.got(<-y)
	})
}

// A waiter that rides behind a void expiry of its own owner's grant is answered
// once, by its Acquire.
func TestGranter_WaiterBehindAVoidExpiryOfItsOwnGrant(t *testing.T) {
	bubble(t, func(w *world) {
		token := w.got(w.do(acquireOf("a", "x", ttl)))
		gate := make(chan struct{})
		w.log.set(once(state.KindExpire, fate{hold: gate, before: func() {
			w.command(state.Command{Kind: state.KindRenew, Name: "a", Owner: "x", Token: token, TTL: ttl})
		}}))
		y := w.async(waitFor("a", "y", ttl))
		time.Sleep(lease.Longer(ttl) + time.Second)
		x := w.async(waitFor("a", "x", ttl)) // waits for the outcome
		x2 := w.async(waitFor("a", "x", ttl))
		w.pending(x)
		close(gate)
		if a, b := w.got(<-x), w.got(<-x2); a != token || b != token {
			t.Errorf("tokens: got %d and %d, want %d: it never expired", a, b, token)
		}
		w.pending(y)
	})
}

func TestGranter_ManyWaitersLeaveNothingBehind(t *testing.T) {
	bubble(t, func(w *world) {
		token := w.got(w.do(acquireOf("a", "x", ttl)))
		ctx, cancel := context.WithCancel(w.Context())
		var answers []<-chan *pb.OperationResult
		for i := range 1000 {
			answers = append(answers, w.asyncCtx(ctx, waitFor("a", fmt.Sprint("w", i), ttl)))
		}
		synctest.Wait()
		cancel()
		for _, c := range answers {
			w.outcome(<-c, pb.Outcome_OUTCOME_NOT_LEADER)
		}
		w.done(w.do(releaseOf("a", "x", token)))
		if g := w.leader(); len(g.slots) != 0 || len(g.agenda) != 0 {
			t.Errorf("memory: got %d slots and %d on the agenda, want none", len(g.slots), len(g.agenda))
		}
	})
}
