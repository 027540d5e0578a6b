package memstore

import (
	"cmp"
	"container/heap"
	"time"

	"github.com/raftlease/raftlease/lease"
)

// deadlines is a heap of held records, the earliest deadline first.
type deadlines []*record

func (d *deadlines) add(r *record)    { heap.Push(d, r) }
func (d *deadlines) moved(r *record)  { heap.Fix(d, r.place) }
func (d *deadlines) remove(r *record) { heap.Remove(d, r.place) }

// Len implements sort.Interface.
func (d deadlines) Len() int { return len(d) }

// Less implements sort.Interface. Names break ties, so that equal deadlines end
// in the same order in every run.
func (d deadlines) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(d[i].deadline, d[j].deadline), cmp.Compare(d[i].name, d[j].name)) < 0
}

// Swap implements sort.Interface.
func (d deadlines) Swap(i, j int) {
	d[i], d[j] = d[j], d[i]
	d[i].place, d[j].place = i, j
}

// Push implements heap.Interface.
func (d *deadlines) Push(x any) {
	r := x.(*record)
	r.place = len(*d)
	*d = append(*d, r)
}

// Pop implements heap.Interface.
func (d *deadlines) Pop() any {
	old := *d
	last := len(old) - 1
	r := old[last]
	old[last] = nil
	*d = old[:last]
	return r
}

// expire ends every grant whose deadline has come.
func (s *Store) expire(now time.Duration) {
	for len(s.due) > 0 && s.due[0].deadline <= now {
		s.free(s.due[0], lease.EventExpired, now)
	}
}

// alarm is the one timer of a Store, for waiters and watchers when nobody calls.
type alarm struct {
	timer *time.Timer   // nil when none is set
	at    time.Duration // when it rings, on Store.now
	set   uint64        // counts the timers, so that one that rings late is known
}

// arm makes sure that the alarm rings at the earliest deadline or before. One
// that rings too early finds nothing due and is set again, which is cheaper
// than moving it at every renewal.
func (s *Store) arm(now time.Duration) {
	if s.closed || len(s.due) == 0 {
		return
	}
	at := s.due[0].deadline
	if s.alarm.timer != nil && s.alarm.at <= at {
		return
	}
	s.disarm()
	s.alarm.set++
	set := s.alarm.set
	s.alarm.at = at
	s.ticks.Add(1)
	s.alarm.timer = time.AfterFunc(at-now, func() { s.tick(set) })
}

func (s *Store) disarm() {
	if s.alarm.timer != nil && s.alarm.timer.Stop() {
		s.ticks.Done()
	}
	s.alarm.timer = nil
}

func (s *Store) tick(set uint64) {
	defer s.ticks.Done()
	s.mu.Lock()
	defer s.mu.Unlock()
	if set == s.alarm.set {
		s.alarm.timer = nil
	}
	if s.closed {
		return
	}
	now := s.now()
	s.expire(now)
	s.arm(now)
}
