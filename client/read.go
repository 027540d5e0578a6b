package client

import (
	"context"
	"fmt"

	"github.com/raftlease/raftlease/internal/wire"
	"github.com/raftlease/raftlease/lease"
	pb "github.com/raftlease/raftlease/transport/rpc/raftleasev1"
)

// Get implements lease.Inspector.
func (c *Client) Get(ctx context.Context, name string) (lease.Record, error) {
	r, _, err := c.read(ctx, name, false)
	return r, err
}

// GetStale is Get from the state of whichever member answers, without asking
// the leader. It may be old, and Remaining is not known; the index of the last
// entry that the member had applied tells how old.
func (c *Client) GetStale(ctx context.Context, name string) (r lease.Record, appliedIndex uint64, err error) {
	return c.read(ctx, name, true)
}

// List implements lease.Inspector.
func (c *Client) List(ctx context.Context, prefix string) ([]lease.Record, error) {
	rs, _, err := c.list(ctx, prefix, false)
	return rs, err
}

// ListStale is List as GetStale is Get.
func (c *Client) ListStale(ctx context.Context, prefix string) (rs []lease.Record, appliedIndex uint64, err error) {
	return c.list(ctx, prefix, true)
}

func (c *Client) read(ctx context.Context, name string, stale bool) (lease.Record, uint64, error) {
	if err := lease.CheckName(name); err != nil {
		return lease.Record{}, 0, err
	}
	ctx, end, err := c.begin(ctx)
	if err != nil {
		return lease.Record{}, 0, fmt.Errorf("get lease %q: %w", name, err)
	}
	defer end()
	resp, err := c.get(ctx, name, stale)
	if err != nil {
		return lease.Record{}, 0, err
	}
	return wire.Record(resp.GetLease()), resp.GetAppliedIndex(), nil
}

func (c *Client) get(ctx context.Context, name string, stale bool) (*pb.GetResponse, error) {
	var out *pb.GetResponse
	err := c.do(ctx, call{what: fmt.Sprintf("get lease %q", name), reads: true},
		func(ctx context.Context, addr string) error {
			resp, err := c.rpc.Lease(addr).Get(ctx, &pb.GetRequest{Name: name, Stale: stale})
			if err == nil {
				out = resp
			}
			return err
		})
	return out, err
}

func (c *Client) list(ctx context.Context, prefix string, stale bool) ([]lease.Record, uint64, error) {
	if err := lease.CheckPrefix(prefix); err != nil {
		return nil, 0, err
	}
	v := call{what: fmt.Sprintf("list leases %q", prefix), reads: true}
	ctx, end, err := c.begin(ctx)
	if err != nil {
		return nil, 0, fmt.Errorf("%s: %w", v.what, err)
	}
	defer end()
	var out *pb.ListResponse
	err = c.do(ctx, v, func(ctx context.Context, addr string) error {
		resp, err := c.rpc.Lease(addr).List(ctx, &pb.ListRequest{Prefix: prefix, Stale: stale})
		if err == nil {
			out = resp
		}
		return err
	})
	if err != nil {
		return nil, 0, err
	}
	return wire.Records(out.GetLeases()), out.GetAppliedIndex(), nil
}
