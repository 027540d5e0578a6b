package memstore

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/raftlease/raftlease/lease"
)

func TestStore_WaitersAreServedInOrder(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Store) {
		g := acquire(t, s, "x", "a", time.Minute)
		var queue []*waiting
		for i := range 20 {
			queue = append(queue, parks(bg, s, "x", fmt.Sprint("owner ", i), time.Minute))
		}
		for i, w := range queue {
			if w.isDone() {
				t.Fatalf("waiter %d is served while the name is held (G1)", i)
			}
			if i%2 == 0 {
				release(t, s, g)
			} else if _, err := s.Break(bg, "x"); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if !w.isDone() || w.err != nil {
				t.Fatalf("waiter %d is not served in its turn: %v", i, w.err)
			}
			if w.grant.Token <= g.Token {
				t.Errorf("waiter %d has token %d after %d (G2)", i, w.grant.Token, g.Token)
			}
			g = w.grant
		}
	})
}

func TestStore_WaitersOfOneOwnerAreServedTogether(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Store) {
		g := acquire(t, s, "x", "a", time.Minute)
		first := parks(bg, s, "x", "b", 10*time.Second)
		other := parks(bg, s, "x", "c", 10*time.Second)
		again := parks(bg, s, "x", "b", 20*time.Second) // a retry of a call that is still parked
		release(t, s, g)
		synctest.Wait()
		if !first.isDone() || !again.isDone() || first.grant.Token != again.grant.Token {
			t.Errorf("the calls of one owner got tokens %d and %d, want one", first.grant.Token, again.grant.Token)
		}
		if other.isDone() {
			t.Error("the waiter behind was served with them (G1)")
		}
		if got, want := remaining(t, s, "x"), lease.Longer(20*time.Second); got != want {
			t.Errorf("%v remain, want the longer ttl, %v", got, want)
		}
		release(t, s, again.grant)
		<-other.done
	})
}

// A context that ended before the name became free decides, also when its
// waiter has not had time to leave.
func TestStore_WaiterThatEndedIsPassedOver(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Store) {
		g := acquire(t, s, "x", "a", time.Minute)
		cause := errors.New("gone home")
		ctx, cancel := context.WithCancelCause(bg)
		left := parks(ctx, s, "x", "b", time.Minute)
		stays := parks(bg, s, "x", "c", time.Minute)
		cancel(cause)
		release(t, s, g)
		<-left.done
		<-stays.done
		if !errors.Is(left.err, cause) || !errors.Is(left.err, lease.ErrUnavailable) || left.grant != (lease.Grant{}) {
			t.Errorf("the waiter that left: %+v, %v", left.grant, left.err)
		}
		if stays.err != nil || stays.grant.Token != g.Token+1 {
			t.Errorf("the next waiter: token %d, %v; want %d, the one after the holder's", stays.grant.Token, stays.err, g.Token+1)
		}
	})
}

func TestStore_WaiterThatEndedLeavesTheQueue(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Store) {
		g := acquire(t, s, "x", "a", time.Minute)
		ctx, cancel := context.WithTimeout(bg, time.Second)
		defer cancel()
		w := parks(ctx, s, "x", "b", time.Minute)
		<-w.done
		if !errors.Is(w.err, context.DeadlineExceeded) {
			t.Errorf("error %v, want the context's", w.err)
		}
		s.mu.Lock()
		if n := len(s.records["x"].queue); n != 0 {
			t.Errorf("%d waiters in the queue, want none", n)
		}
		s.mu.Unlock()
		release(t, s, g)
		if _, err := s.Get(bg, "x"); !errors.Is(err, lease.ErrNotFound) {
			t.Errorf("get: %v, want that nobody was granted the name", err)
		}
	})
}

// G4: to the nanosecond, a wait of any length costs its drift and no more.
func TestStore_WaitIsNotLeaseTime(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Store) {
		g := acquire(t, s, "x", "a", time.Hour)
		w := parks(bg, s, "x", "b", 10*time.Second)
		time.Sleep(30 * time.Minute)
		release(t, s, g)
		<-w.done
		parked := 30 * time.Minute
		if got, want := w.grant.Remaining(), lease.Shorter(10*time.Second)-(parked-lease.Shorter(parked)); got != want {
			t.Errorf("%v remain after a wait of %v, want %v", got, parked, want)
		}
	})
}
