package lease

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// onceMark opens the data that Once keeps with a name; the slot follows.
const onceMark = "raftlease-once/1 "

// Once runs f under the lease of job, as Run does, if no call of Once has begun
// this slot or a later one of the same lease before, and returns whether f was
// called. A slot is a time of the schedule, such as the hour that a report is
// for, not of a clock: all replicas have to name it alike, and it may only rise.
//
// However many replicas call it, whatever their clocks say and whenever they
// crash, f is called at most once for a slot: the slot is marked in the lease's
// data with the grant's token before f is called, and is not run again when f
// returns an error or its process dies. A slot that was skipped in favour of a
// later one is not made up for. Work that has to be done at least once belongs in
// the data of another lease, or into what it changes.
//
// The store has to be a DataStore and an Inspector. The mark is all the data that
// the name may have, and stays when the name is free. A replica that names a slot
// far in the future takes all slots before it away; empty data puts that right.
func Once(ctx context.Context, store Store, job Job, slot time.Time, f func(context.Context, Grant) error) (ran bool, err error) {
	if job.Disabled {
		err = Run(ctx, store, job, func(ctx context.Context, g Grant) error {
			ran = true
			return f(ctx, g)
		})
		return ran, err
	}
	o, err := newOnce(store, job, slot)
	if err != nil {
		return false, fmt.Errorf("run once under lease %q: %w", job.Name, err)
	}
	// Not under the lease: most replicas come when the slot has been run.
	if done, err := o.done(ctx); done || errors.Is(err, ErrInvalid) {
		return false, err
	}
	err = Run(ctx, store, job, func(ctx context.Context, g Grant) error {
		done, err := o.begin(ctx, g)
		if done || err != nil {
			return err
		}
		ran = true
		return f(ctx, g)
	})
	return ran, err
}

// once is one slot of one lease.
type once struct {
	data DataStore
	read Inspector
	job  Job
	slot time.Time
}

func newOnce(s Store, j Job, slot time.Time) (*once, error) {
	var f Faults
	data, canPut := s.(DataStore)
	read, canGet := s.(Inspector)
	if !canPut || !canGet {
		f.Add("store", fmt.Sprintf("a %T", s), "a store that is a lease.DataStore and a lease.Inspector")
	}
	if slot.IsZero() || slot.Year() > 9999 {
		f.Add("slot", slot, "a time of the schedule, before the year 10000")
	}
	return &once{data: data, read: read, job: j.withDefaults(), slot: slot}, f.Err()
}

// done reports whether this slot or a later one was begun.
func (o *once) done(ctx context.Context) (bool, error) {
	r, err := o.read.Get(ctx, o.job.Name)
	if errors.Is(err, ErrNotFound) || err == nil && len(r.Data) == 0 {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	text, ok := strings.CutPrefix(string(r.Data), onceMark)
	mark, bad := time.Parse(time.RFC3339Nano, text)
	if !ok || bad != nil {
		var f Faults
		f.Add("data", string(r.Data), "a mark of lease.Once; keep other data under another name")
		return false, fmt.Errorf("run once under lease %q: %w", o.job.Name, f.Err())
	}
	return !mark.Before(o.slot), nil
}

// begin marks the slot, unless it is done.
func (o *once) begin(ctx context.Context, g Grant) (done bool, err error) {
	err = o.insist(ctx, func(ctx context.Context) (err error) {
		done, err = o.done(ctx)
		return err
	})
	if done || err != nil {
		return done, err
	}
	mark := []byte(onceMark + o.slot.UTC().Format(time.RFC3339Nano))
	return false, o.insist(ctx, func(ctx context.Context) error { return o.data.Put(ctx, g, mark) })
}

// insist repeats a call while that can help and ctx, which ends with the lease,
// has not.
func (o *once) insist(ctx context.Context, call func(context.Context) error) error {
	for tries := 0; ; tries++ {
		err := func() error {
			ctx, cancel := context.WithTimeout(ctx, o.job.tryTimeout())
			defer cancel()
			return call(ctx)
		}()
		switch {
		case err == nil || errors.Is(err, ErrLost) || errors.Is(err, ErrInvalid) || errors.Is(err, ErrClosed):
			return err
		case !sleep(ctx, backoff(tries, o.job.TTL)):
			return fmt.Errorf("mark the slot: %w; last answer: %w", context.Cause(ctx), err)
		}
	}
}
