package granter

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	pb "github.com/raftlease/raftlease/transport/rpc/raftleasev1"
)

func handoverTo(name, to string) *pb.Operation {
	return &pb.Operation{Op: &pb.Operation_Handover{Handover: &pb.HandoverRequest{Name: name, To: to}}}
}

// wantedAt renews and returns who wants the lease.
func (w *world) wantedAt(name, owner string, token uint64) string {
	r := w.do(renewOf(name, owner, token, ttl))
	w.done(r)
	return r.GetRenew().GetWantedBy()
}

func TestGranter_HandoverGoesToWhomItNames(t *testing.T) {
	bubble(t, func(w *world) {
		token := w.got(w.do(acquireOf("a", "x", ttl)))
		first := w.async(waitFor("a", "first", ttl))
		synctest.Wait()
		heir := w.async(waitFor("a", "heir", ttl))
		synctest.Wait()
		if by := w.wantedAt("a", "x", token); by != "" {
			t.Errorf("wanted by %q before the handover", by)
		}
		handover := w.async(handoverTo("a", "heir"))
		synctest.Wait()
		if by := w.wantedAt("a", "x", token); by != "heir" {
			t.Errorf("wanted by %q, want heir", by)
		}
		w.pending(handover)
		before := w.writes()
		w.done(w.do(releaseOf("a", "x", token)))
		next := w.got(<-heir)
		w.pending(first)
		if r := <-handover; r.GetHandover().GetToken() != next {
			t.Errorf("handover: got %v, want token %d", r, next)
		}
		if n := w.writes() - before; n != 1 {
			t.Errorf("entries for a release and the next grant: got %d, want 1", n)
		}
		if by := w.wantedAt("a", "heir", next); by != "" {
			t.Errorf("wanted by %q after the handover", by)
		}
		w.done(w.do(releaseOf("a", "heir", next)))
		w.got(<-first)
	})
}

func TestGranter_HandoverNeedsSomebodyWhoWaits(t *testing.T) {
	bubble(t, func(w *world) {
		w.refused(w.do(handoverTo("a", "heir")), pb.ErrorCode_ERROR_CODE_NOT_FOUND)
		token := w.got(w.do(acquireOf("a", "x", ttl)))
		w.refused(w.do(handoverTo("a", "heir")), pb.ErrorCode_ERROR_CODE_INVALID)
		if r := w.do(handoverTo("a", "x")); r.GetHandover().GetToken() != token {
			t.Errorf("handover to the holder: got %v, want token %d", r, token)
		}
		if by := w.wantedAt("a", "x", token); by != "" {
			t.Errorf("wanted by %q, want nobody", by)
		}
	})
}

func TestGranter_HandoverEnds(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(w *world, leave, giveUp func())
		want pb.Outcome
	}{
		{"with its caller", func(_ *world, _, giveUp func()) { giveUp() }, pb.Outcome_OUTCOME_UNKNOWN},
		{"with the heir", func(_ *world, leave, _ func()) { leave() }, pb.Outcome_OUTCOME_DONE},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(w *world) {
				token := w.got(w.do(acquireOf("a", "x", ttl)))
				first := w.async(waitFor("a", "first", ttl))
				synctest.Wait()
				ctx, leave := context.WithCancel(w.Context())
				defer leave()
				w.asyncCtx(ctx, waitFor("a", "heir", ttl))
				synctest.Wait()
				call, giveUp := context.WithCancel(w.Context())
				defer giveUp()
				handover := w.asyncCtx(call, handoverTo("a", "heir"))
				synctest.Wait()
				c.end(w, leave, giveUp)
				if r := <-handover; r.Outcome != c.want || r.GetHandover() != nil {
					t.Errorf("handover: got %v, want %v and no grant", r, c.want)
				}
				if by := w.wantedAt("a", "x", token); by != "" {
					t.Errorf("wanted by %q, want nobody", by)
				}
				w.done(w.do(releaseOf("a", "x", token)))
				w.got(<-first)
			})
		})
	}
}

// A holder that does not release keeps what it has.
func TestGranter_HandoverTakesNothing(t *testing.T) {
	bubble(t, func(w *world) {
		token := w.got(w.do(acquireOf("a", "x", ttl)))
		heir := w.async(waitFor("a", "heir", ttl))
		synctest.Wait()
		ctx, cancel := context.WithTimeout(w.Context(), 3*ttl)
		defer cancel()
		handover := w.asyncCtx(ctx, handoverTo("a", "heir"))
		for range 6 {
			time.Sleep(ttl / 2)
			w.wantedAt("a", "x", token)
		}
		w.outcome(<-handover, pb.Outcome_OUTCOME_UNKNOWN)
		w.pending(heir)
	})
}
