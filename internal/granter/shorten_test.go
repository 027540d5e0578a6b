package granter

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/raftlease/raftlease/internal/state"
)

// A shorter ttl never shortens a promise; the recorded one follows down when
// the longer promise has run out.
func TestGranter_ShorterRenewalKeepsTheLongerPromise(t *testing.T) {
	bubble(t, func(w *world) {
		token := w.got(w.do(acquireOf("a", "x", 60*time.Second)))
		start := time.Now()
		for time.Since(start) < 50*time.Second {
			w.done(w.do(renewOf("a", "x", token, ttl)))
			if n, _ := w.log.commands(state.KindShorten); len(n) > 0 {
				t.Fatalf("shortened %v after the longer promise, want not before it has run out", time.Since(start))
			}
			time.Sleep(time.Second)
		}
		for range 3 {
			time.Sleep(time.Second)
			w.done(w.do(renewOf("a", "x", token, ttl)))
		}
		synctest.Wait()
		time.Sleep(10 * time.Millisecond)
		l, _ := w.log.machine.Get("a")
		if n, _ := w.log.commands(state.KindShorten); l.TTL != ttl || len(n) != 1 {
			t.Errorf("recorded ttl: got %v by %d commands, want %v by one", l.TTL, len(n), ttl)
		}
		last := time.Now()
		w.got(w.do(waitFor("a", "y", ttl)))
		if gone := time.Since(last); gone > ttl+time.Second {
			t.Errorf("ended %v after the last renewal, want about %v", gone, ttl)
		}
	})
}

// A renewal with a shorter ttl that is never repeated leaves the first promise.
func TestGranter_OneShorterRenewalShortensNothing(t *testing.T) {
	bubble(t, func(w *world) {
		token := w.got(w.do(acquireOf("a", "x", 60*time.Second)))
		w.done(w.do(renewOf("a", "x", token, time.Second)))
		time.Sleep(60*time.Second - 10*time.Millisecond)
		w.holds("a", "x")
	})
}

// A longer renewal while a Shorten is under way goes through the log again.
func TestGranter_LongerRenewalBehindAShortenIsRecorded(t *testing.T) {
	bubble(t, func(w *world) {
		token := shortening(w)
		gate := make(chan struct{})
		w.log.set(once(state.KindShorten, fate{hold: gate}))
		w.done(w.do(renewOf("a", "x", token, ttl))) // proposes the Shorten, which hangs
		again := w.async(renewOf("a", "x", token, 20*time.Second))
		w.pending(again)
		close(gate)
		w.done(<-again)
		if l, _ := w.log.machine.Get("a"); l.TTL != 20*time.Second {
			t.Errorf("recorded ttl: got %v, want 20s: a take-over restarts it", l.TTL)
		}
	})
}

// shortening returns a grant whose recorded ttl is 20 s and whose promise ends in 5 s: a
// renewal with ttl proposes a Shorten.
func shortening(w *world) (token uint64) {
	w.Helper()
	token = w.got(w.do(acquireOf("a", "x", 20*time.Second)))
	time.Sleep(15 * time.Second)
	return token
}

// A Shorten whose entry failed is tried again by the next renewal.
func TestGranter_FailedShortenIsTriedAgain(t *testing.T) {
	bubble(t, func(w *world) {
		token := shortening(w)
		w.log.set(once(state.KindShorten, fate{refuse: raft.ErrEnqueueTimeout}))
		for range 2 {
			w.done(w.do(renewOf("a", "x", token, ttl)))
			time.Sleep(time.Second)
		}
		if l, _ := w.log.machine.Get("a"); l.TTL != ttl {
			t.Errorf("recorded ttl: got %v, want %v", l.TTL, ttl)
		}
	})
}

// One Shorten at a time: the outcome of one must not be taken for that of
// another.
func TestGranter_OneShortenAtATime(t *testing.T) {
	bubble(t, func(w *world) {
		token := shortening(w)
		gate := make(chan struct{})
		w.log.set(once(state.KindShorten, fate{hold: gate}))
		w.done(w.do(renewOf("a", "x", token, ttl)))
		time.Sleep(8 * time.Second)
		w.done(w.do(renewOf("a", "x", token, 3*time.Second)))
		close(gate)
		time.Sleep(100 * time.Millisecond)
		if n, _ := w.log.commands(state.KindShorten); len(n) != 1 {
			t.Errorf("commands: got %d, want 1", len(n))
		}
		w.done(w.do(renewOf("a", "x", token, 3*time.Second)))
		time.Sleep(100 * time.Millisecond)
		if l, _ := w.log.machine.Get("a"); l.TTL != 3*time.Second {
			t.Errorf("recorded ttl: got %v, want 3s", l.TTL)
		}
	})
}

// G3: while a Shorten is under way, neither a refresh ahead of it in the log nor
// a void Shorten of an earlier term makes a longer renewal pass without being
// recorded: a take-over would restart only the shorter ttl.
func TestGranter_RecordedTTLIsTheOneBehindTheShorten(t *testing.T) {
	bubble(t, func(w *world) {
		token := shortening(w)
		gate := make(chan struct{})
		w.log.set(once(state.KindShorten, fate{hold: gate}))
		w.done(w.do(renewOf("a", "x", token, ttl)))
		w.log.mu.Lock()
		w.log.append(state.Entry{Commands: []state.Command{{Kind: state.KindShorten, Name: "a", Token: token, TTL: ttl}}})
		w.log.mu.Unlock()
		w.command(state.Command{Kind: state.KindRenew, Name: "a", Owner: "x", Token: token, TTL: 20 * time.Second})
		longer := w.async(renewOf("a", "x", token, 20*time.Second))
		time.Sleep(100 * time.Millisecond)
		w.pending(longer)
		close(gate)
		w.done(<-longer)
		if l, _ := w.log.machine.Get("a"); l.TTL != 20*time.Second {
			t.Errorf("recorded ttl: got %v, want 20s", l.TTL)
		}
	})
}
