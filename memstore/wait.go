package memstore

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/raftlease/raftlease/lease"
)

// waiter is one parked AcquireWait.
type waiter struct {
	ctx    context.Context
	owner  string
	ttl    time.Duration
	anchor lease.Anchor
	since  time.Duration // when it was parked, on Store.now

	granted bool          // guarded by Store.mu
	grant   lease.Grant   // set before ready is closed
	ready   chan struct{} // closed when granted
}

// AcquireWait implements lease.Waiter. Whether a waiter was granted the name or
// its ctx ended is decided in one step, so it returns either the grant or an
// error and never leaves a grant behind.
func (s *Store) AcquireWait(ctx context.Context, name, owner string, ttl time.Duration) (lease.Grant, error) {
	if err := lease.CheckAcquire(name, owner, ttl, s.limits); err != nil {
		return lease.Grant{}, err
	}
	w := &waiter{ctx: ctx, owner: owner, ttl: ttl, anchor: lease.AnchorOn(s.holder), ready: make(chan struct{})}
	if err := s.enqueue(w, name); err != nil {
		return lease.Grant{}, fmt.Errorf("wait for lease %q: %w", name, err)
	}
	var err error
	select {
	case <-w.ready:
		return w.grant, nil
	case <-ctx.Done():
		err = ended(ctx)
	case <-s.done:
		err = lease.ErrClosed
	}
	if s.dequeue(w, name) {
		return w.grant, nil
	}
	return lease.Grant{}, fmt.Errorf("wait for lease %q: %w", name, err)
}

// enqueue serves w at once or parks it.
func (s *Store) enqueue(w *waiter, name string) error {
	now, err := s.begin(w.ctx)
	if err != nil {
		return err
	}
	defer s.finish(now)
	w.since = now
	r := s.take(name, w.owner, w.ttl, now)
	if r.owner == w.owner {
		w.serve(r, now)
		return nil
	}
	r.queue = append(r.queue, w)
	return nil
}

// dequeue takes w out of the queue, unless it was granted the name before that,
// which it reports.
func (s *Store) dequeue(w *waiter, name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.records[name]; r != nil && !w.granted {
		r.queue = slices.DeleteFunc(r.queue, func(o *waiter) bool { return o == w })
	}
	return w.granted
}

// handOver grants the free record r to its first waiter whose ctx has not
// ended. Other calls of the same owner wait for nothing any more: they get the
// same grant, extended.
func (s *Store) handOver(r *record, now time.Duration) {
	for r.owner == "" && len(r.queue) > 0 {
		w := r.queue[0]
		r.queue = r.queue[1:]
		if w.ctx.Err() == nil {
			s.grant(r, w.owner, w.ttl, now)
			w.serve(r, now)
		}
	}
	r.queue = slices.DeleteFunc(r.queue, func(w *waiter) bool {
		same := w.owner == r.owner && w.ctx.Err() == nil
		if same {
			s.extend(r, w.ttl, now)
			s.publish(lease.EventExtended, r, now)
			w.serve(r, now)
		}
		return same
	})
}

// serve gives w the grant of r. Its time in the queue is not lease time.
func (w *waiter) serve(r *record, now time.Duration) {
	w.granted = true
	w.grant = w.anchor.Grant(r.name, w.owner, r.token, w.ttl, now-w.since)
	close(w.ready)
}
