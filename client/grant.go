package client

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/raftlease/raftlease/lease"
	pb "github.com/raftlease/raftlease/transport/rpc/raftleasev1"
)

// Acquire implements lease.Store.
func (c *Client) Acquire(ctx context.Context, name, owner string, ttl time.Duration) (lease.Grant, error) {
	if err := lease.CheckAcquire(name, owner, ttl, c.limits); err != nil {
		return lease.Grant{}, err
	}
	v := call{what: fmt.Sprintf("acquire lease %q", name)}
	ctx, end, err := c.begin(ctx)
	if err != nil {
		return lease.Grant{}, fmt.Errorf("%s: %w", v.what, err)
	}
	defer end()
	k := claimKey{name, owner}
	if err := c.enter(ctx, v, k); err != nil {
		return lease.Grant{}, err
	}
	g, err := c.acquire(ctx, v, k, ttl)
	c.claims.leave(k, g.Token)
	return g, err
}

// acquire asks for the name of a claim that has been entered.
func (c *Client) acquire(ctx context.Context, v call, k claimKey, ttl time.Duration) (lease.Grant, error) {
	req := &pb.AcquireRequest{Name: k.name, Owner: k.owner, Ttl: durationpb.New(ttl), Wait: v.waits}
	var g lease.Grant
	err := c.do(ctx, v, func(ctx context.Context, addr string) error {
		anchor := lease.NewAnchor()
		resp, err := c.rpc.Lease(addr).Acquire(ctx, req)
		if err != nil {
			return err
		}
		if t := resp.GetToken(); t == 0 || t > lease.MaxToken {
			return fmt.Errorf("answer with token %d, want 1 to 2^53-1", t) // G2: no grant that others could not tell apart
		}
		g = granted(anchor, req, resp)
		return nil
	})
	if err != nil {
		return lease.Grant{}, err
	}
	return g, nil
}

// granted is the grant that an answer tells of. The time that the request was
// parked cannot be longer than it was under way: a member that says so must not
// make the holder believe for longer (G4).
func granted(anchor lease.Anchor, req *pb.AcquireRequest, resp *pb.AcquireResponse) lease.Grant {
	ttl := resp.GetTtl().AsDuration()
	if ttl <= 0 {
		ttl = req.GetTtl().AsDuration()
	}
	parked := min(resp.GetParked().AsDuration(), anchor.Elapsed())
	return anchor.Grant(req.GetName(), req.GetOwner(), resp.GetToken(), ttl, parked)
}

// Renew implements lease.Store.
func (c *Client) Renew(ctx context.Context, g lease.Grant, ttl time.Duration) (lease.Grant, error) {
	if err := lease.CheckRenew(g, ttl, c.limits); err != nil {
		return lease.Grant{}, err
	}
	v := call{what: fmt.Sprintf("renew lease %q", g.Name)}
	ctx, end, err := c.begin(ctx)
	if err != nil {
		return lease.Grant{}, fmt.Errorf("%s: %w", v.what, err)
	}
	defer end()
	req := &pb.RenewRequest{Name: g.Name, Owner: g.Owner, Token: g.Token, Ttl: durationpb.New(ttl)}
	var renewed lease.Grant
	err = c.do(ctx, v, func(ctx context.Context, addr string) error {
		anchor := lease.NewAnchor()
		_, err := c.rpc.Lease(addr).Renew(ctx, req)
		if err == nil {
			renewed = anchor.Grant(g.Name, g.Owner, g.Token, ttl, 0)
		}
		return err
	})
	if err != nil {
		return lease.Grant{}, err
	}
	return renewed, nil
}

// Release implements lease.Store. When its outcome is unknown, the next acquire
// of the same name and owner by this client repeats it first.
func (c *Client) Release(ctx context.Context, g lease.Grant) error {
	if err := lease.CheckGrant(g); err != nil {
		return err
	}
	v := call{what: fmt.Sprintf("release lease %q", g.Name)}
	ctx, end, err := c.begin(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", v.what, err)
	}
	defer end()
	return c.release(ctx, v, claimKey{g.Name, g.Owner}, g.Token)
}

// Put implements lease.DataStore.
func (c *Client) Put(ctx context.Context, g lease.Grant, data []byte) error {
	if err := lease.CheckPut(g, data); err != nil {
		return err
	}
	v := call{what: fmt.Sprintf("put data of lease %q", g.Name)}
	ctx, end, err := c.begin(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", v.what, err)
	}
	defer end()
	req := &pb.PutRequest{Name: g.Name, Owner: g.Owner, Token: g.Token, Data: data}
	return c.do(ctx, v, func(ctx context.Context, addr string) error {
		_, err := c.rpc.Lease(addr).Put(ctx, req)
		return err
	})
}
