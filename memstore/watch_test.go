package memstore

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/raftlease/raftlease/lease"
)

var errEnough = errors.New("enough")

// first returns the first n events that a watch reports.
func first(t testing.TB, s *Store, prefix string, after uint64, n int) []lease.Event {
	t.Helper()
	var events []lease.Event
	err := s.Watch(bg, prefix, after, func(v lease.Event) error {
		if events = append(events, v); len(events) == n {
			return errEnough
		}
		return nil
	})
	if err != errEnough {
		t.Fatalf("watch: %v", err)
	}
	return events
}

func kinds(events []lease.Event) string {
	var out string
	for _, v := range events {
		out += fmt.Sprintf("%s %s %d; ", v.Kind, v.Record.Name, v.Index)
	}
	return out
}

// changes makes n changes.
func changes(t testing.TB, s *Store, n int) {
	t.Helper()
	for range n / 2 {
		release(t, s, acquire(t, s, "x", "a", time.Minute))
	}
}

func TestStore_HistoryIsBoundedAndResumesWithin(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Store) {
		acquire(t, s, "kept", "k", time.Hour)
		for done := 1; done < 6*historyLen; done += 2 {
			s.mu.Lock()
			kept, index := uint64(len(s.past.events)), s.past.index
			s.mu.Unlock()
			if kept > 2*historyLen || kept < min(historyLen, index) {
				t.Fatalf("%d of %d changes are kept, want %d to %d", kept, index, historyLen, 2*historyLen)
			}
			if oldest := index - kept; oldest > 0 { // after 0 means the state
				resumesWithin(t, s, oldest, index)
			}
			changes(t, s, 2)
		}
	})
}

// resumesWithin checks what is reported to a watcher that resumes at the oldest
// index from which that is possible, and outside of what is kept.
func resumesWithin(t testing.TB, s *Store, oldest, index uint64) {
	t.Helper()
	for i, v := range first(t, s, "", oldest, int(index-oldest)) {
		if v.Index != oldest+1+uint64(i) {
			t.Fatalf("resumed after %d: event %d has index %d", oldest, i, v.Index)
		}
	}
	for _, gone := range []uint64{oldest - 1, index + 1, 1 << 63} {
		if gone == 0 {
			continue
		}
		if got, want := kinds(first(t, s, "k", gone, 2)), fmt.Sprintf("state kept %d; synced  %d; ", index, index); got != want {
			t.Errorf("resumed after %d, which is gone: %s want %s", gone, got, want)
		}
	}
}

func TestStore_WatcherThatFellBehindGetsTheState(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Store) {
		var events []lease.Event
		err := s.Watch(bg, "", 0, func(v lease.Event) error {
			events = append(events, v)
			if len(events) == 1 {
				changes(t, s, 4*historyLen) // fn may call the store
				acquire(t, s, "live", "l", time.Minute)
				return nil
			}
			if v.Kind == lease.EventSynced {
				return errEnough
			}
			return nil
		})
		last := uint64(4*historyLen + 1)
		if got, want := kinds(events), fmt.Sprintf("synced  0; state live %d; synced  %d; ", last, last); err != errEnough || got != want {
			t.Errorf("%s (%v), want %s", got, err, want)
		}
	})
}

func TestStore_EventsTellWhatHappened(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Store) {
		a := acquire(t, s, "x", "a", time.Second) // 1
		acquire(t, s, "x", "a", time.Second)      // 2 extended: a repeated acquire is recorded
		renew(t, s, a, time.Second)               // a renewal within the ttl is not
		renew(t, s, a, 2*time.Second)             // 3 extended
		if err := s.Put(bg, a, []byte("d")); err != nil {
			t.Fatal(err) // 4
		}
		release(t, s, a)                          // 5
		b := acquire(t, s, "x", "b", time.Second) // 6
		if ended, err := s.Break(bg, "x"); err != nil || ended.Owner != "b" || ended.Token != b.Token {
			t.Errorf("broke %+v (%v), want the grant of b", ended, err) // 7
		}
		c := acquire(t, s, "x", "c", time.Second) // 8
		events := first(t, s, "", 0, 2)           // the state
		if got, want := kinds(events), "state x 8; synced  8; "; got != want {
			t.Errorf("%s want %s", got, want)
		}
		time.Sleep(2 * time.Second) // 9
		events = first(t, s, "x", 1, 8)
		want := "extended x 2; extended x 3; data x 4; released x 5; granted x 6; broken x 7; granted x 8; expired x 9; "
		if got := kinds(events); got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
		for i, token := range []uint64{a.Token, a.Token, a.Token, a.Token, b.Token, b.Token, c.Token, c.Token} {
			if r := events[i].Record; r.Token != token || i > 1 && string(r.Data) != "d" {
				t.Errorf("%s: token %d, data %q, want %d and d", events[i].Kind, r.Token, r.Data, token)
			}
		}
		lostBecause(t, s, a, lease.ReasonReleased)
		lostBecause(t, s, b, lease.ReasonBroken)
		lostBecause(t, s, c, lease.ReasonExpired)
		lostBecause(t, s, lease.Grant{Name: "x", Owner: "c", Token: c.Token + 1}, lease.ReasonGone)
		for i := range historyLen {
			changes(t, s, 4+i%2)
		}
		if l := lostBecause(t, s, c, lease.ReasonGone); l.NewOwner != "" { // no longer known why
			t.Errorf("now held by %q, want nobody", l.NewOwner)
		}
		if _, err := s.Break(bg, "x"); !errors.Is(err, lease.ErrNotFound) {
			t.Errorf("break of a free name: %v, want lease.ErrNotFound", err)
		}
	})
}

// A caller may do with a record and an event what it likes.
func TestStore_HandsOutCopies(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Store) {
		g := acquire(t, s, "x", "a", time.Minute)
		if err := s.Put(bg, g, []byte("good")); err != nil {
			t.Fatal(err)
		}
		spoil := func(data []byte) {
			for i := range data {
				data[i] = '!'
			}
		}
		rs, err := s.List(bg, "")
		if err != nil {
			t.Fatal(err)
		}
		spoil(rs[0].Data)
		spoil(first(t, s, "", 1, 1)[0].Record.Data)
		spoil(first(t, s, "", 0, 1)[0].Record.Data)
		r, err := s.Break(bg, "x")
		if err != nil {
			t.Fatal(err)
		}
		spoil(r.Data)
		r, err = s.Get(bg, "x")
		if err != nil || string(r.Data) != "good" || string(first(t, s, "", 1, 1)[0].Record.Data) != "good" {
			t.Errorf("data %q (%v), want good", r.Data, err)
		}
	})
}

func TestStore_ListOfNothingIsEmpty(t *testing.T) {
	s := New()
	defer s.Close()
	if rs, err := s.List(bg, ""); err != nil || rs == nil || len(rs) != 0 {
		t.Errorf("list: %v, %v, want an empty list", rs, err)
	}
}
