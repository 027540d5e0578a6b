package raftlease

import (
	"context"
	"fmt"
	"strings"

	"github.com/raftlease/raftlease/internal/granter"
	"github.com/raftlease/raftlease/internal/wire"
	"github.com/raftlease/raftlease/lease"
	pb "github.com/raftlease/raftlease/transport/rpc/raftleasev1"
)

// Get implements lease.Inspector. It is linearizable: the leader answers, after
// a majority confirmed that it still is one.
func (n *Node) Get(ctx context.Context, name string) (lease.Record, error) {
	l, _, err := n.get(ctx, name)
	return l, err
}

func (n *Node) get(ctx context.Context, name string) (lease.Record, uint64, error) {
	if err := lease.CheckName(name); err != nil {
		return lease.Record{}, 0, err
	}
	r, _, err := n.do(ctx, &pb.Operation{Op: &pb.Operation_Get{Get: &pb.GetRequest{Name: name}}})
	if err != nil {
		return lease.Record{}, 0, fmt.Errorf("get lease %q: %w", name, err)
	}
	return wire.Record(r.GetGet().GetLease()), r.GetGet().GetAppliedIndex(), nil
}

// List implements lease.Inspector, linearizably like Get.
func (n *Node) List(ctx context.Context, prefix string) ([]lease.Record, error) {
	l, _, err := n.list(ctx, prefix)
	return l, err
}

func (n *Node) list(ctx context.Context, prefix string) ([]lease.Record, uint64, error) {
	if err := lease.CheckPrefix(prefix); err != nil {
		return nil, 0, err
	}
	r, _, err := n.do(ctx, &pb.Operation{Op: &pb.Operation_List{List: &pb.ListRequest{Prefix: prefix}}})
	if err != nil {
		return nil, 0, fmt.Errorf("list leases: %w", err)
	}
	return wire.Records(r.GetList().GetLeases()), r.GetList().GetAppliedIndex(), nil
}

// GetStale returns the record of name as this node knows it, without asking
// anybody, and the index up to which it has applied the log. It may be old.
// Remaining is unknown here, and zero.
func (n *Node) GetStale(ctx context.Context, name string) (lease.Record, uint64, error) {
	if err := lease.CheckName(name); err != nil {
		return lease.Record{}, 0, err
	}
	m, err := n.local(ctx)
	if err != nil {
		return lease.Record{}, 0, fmt.Errorf("get lease %q: %w", name, err)
	}
	m.fsm.mu.RLock()
	defer m.fsm.mu.RUnlock()
	index := m.fsm.machine.Index()
	l, ok := m.fsm.machine.Get(name)
	if !ok {
		return lease.Record{}, index, fmt.Errorf("get lease %q: %w", name, lease.ErrNotFound)
	}
	return wire.Record(granter.Record(l)), index, nil
}

// ListStale is to List what GetStale is to Get.
func (n *Node) ListStale(ctx context.Context, prefix string) ([]lease.Record, uint64, error) {
	if err := lease.CheckPrefix(prefix); err != nil {
		return nil, 0, err
	}
	m, err := n.local(ctx)
	if err != nil {
		return nil, 0, fmt.Errorf("list leases: %w", err)
	}
	view := m.fsm.machine.Snapshot()
	var rs []lease.Record
	for l := range view.All(prefix) {
		rs = append(rs, wire.Record(granter.Record(l)))
	}
	return rs, view.Index(), nil
}

// local returns the node's part in the cluster, for a read that asks nobody
// else.
func (n *Node) local(ctx context.Context) (*member, error) {
	for {
		switch m, change := n.current(); {
		case ctx.Err() != nil || n.ctx.Err() != nil:
			return nil, n.gaveUp(ctx, false)
		case m != nil:
			return m, nil
		default:
			select {
			case <-change:
			case <-ctx.Done():
			case <-n.ctx.Done():
			}
		}
	}
}

// Watch implements lease.Watcher from the state of this node. What it reports
// first contains everything that was acknowledged, by whichever node, before the
// call; later it may be a little behind the leader, and it never goes back. A
// watch that resumes asks nobody else. fn runs on the caller's goroutine and may
// call the node.
func (n *Node) Watch(ctx context.Context, prefix string, after uint64, fn func(lease.Event) error) error {
	if err := lease.CheckPrefix(prefix); err != nil {
		return err
	}
	resume := after > 0
	m, err := n.local(ctx)
	if err == nil && !resume {
		err = n.catchUp(ctx, m)
	}
	if err != nil {
		return fmt.Errorf("watch leases: %w", err)
	}
	for {
		events, index, changed := m.fsm.since(prefix, after, resume)
		for _, e := range events {
			if e.Kind != lease.EventSynced && !strings.HasPrefix(e.Record.Name, prefix) {
				continue
			}
			if ctx.Err() != nil || n.ctx.Err() != nil {
				return fmt.Errorf("watch leases: %w", n.gaveUp(ctx, false))
			}
			if err := fn(e); err != nil {
				return err
			}
		}
		after, resume = max(after, index), true
		select {
		case <-changed:
		case <-ctx.Done():
		case <-n.ctx.Done():
		}
		if ctx.Err() != nil || n.ctx.Err() != nil {
			return fmt.Errorf("watch leases: %w", n.gaveUp(ctx, false))
		}
	}
}

// catchUp waits until this node has applied everything that was acknowledged
// before the call.
func (n *Node) catchUp(ctx context.Context, m *member) error {
	// No name begins with NUL: only the index is wanted.
	r, _, err := n.do(ctx, &pb.Operation{Op: &pb.Operation_List{List: &pb.ListRequest{Prefix: "\x00"}}})
	if err != nil {
		return err
	}
	for {
		index, moved := m.fsm.position()
		if index >= r.GetList().GetAppliedIndex() {
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return n.gaveUp(ctx, false)
		case <-n.ctx.Done():
			return n.gaveUp(ctx, false)
		}
	}
}

// since returns what a watcher that has seen everything up to after has to see
// next, the index it then has seen, and a channel that is closed when there is
// more. It begins with the present state when resume is false or some of the
// changes are gone.
func (f *fsm) since(prefix string, after uint64, resume bool) ([]lease.Event, uint64, <-chan struct{}) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	events, ok, changed := f.events.since(after)
	if resume && ok {
		return events, f.machine.Index(), changed
	}
	view := f.machine.Snapshot()
	events = nil
	for l := range view.All(prefix) {
		events = append(events, lease.Event{Index: view.Index(), Kind: lease.EventState, Record: wire.Record(granter.Record(l))})
	}
	return append(events, lease.Event{Index: view.Index(), Kind: lease.EventSynced}), view.Index(), changed
}
