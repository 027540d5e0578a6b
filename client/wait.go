package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/raftlease/raftlease/internal/wire"
	"github.com/raftlease/raftlease/lease"
)

// clearTime bounds the search for a grant that a waiter left behind.
const clearTime = 2 * time.Second

func isUnknown(err error) bool { return errors.Is(err, lease.ErrUnknownOutcome) }

// AcquireWait implements lease.Waiter. When it ends without an answer, and the
// name may have been granted to it, the client looks for that grant for up to
// 2 s more in the background and releases it, unless another call of this client
// has got it for the same owner. After that, a grant that could not be reached
// ends with its ttl.
func (c *Client) AcquireWait(ctx context.Context, name, owner string, ttl time.Duration) (lease.Grant, error) {
	if err := lease.CheckAcquire(name, owner, ttl, c.limits); err != nil {
		return lease.Grant{}, err
	}
	v := call{what: fmt.Sprintf("wait for lease %q", name)}
	ctx, end, err := c.begin(ctx)
	if err != nil {
		return lease.Grant{}, fmt.Errorf("%s: %w", v.what, err)
	}
	defer end()
	k := claimKey{name, owner}
	if err := c.enter(ctx, v, k); err != nil {
		return lease.Grant{}, err
	}
	// One try first. It takes no longer when the name is free; when it is not,
	// its answer proves that owner has no grant yet, so that one found after
	// the wait can only be younger.
	g, err := c.acquire(ctx, v, k, ttl)
	var held *lease.HeldError
	if !errors.As(err, &held) {
		c.claims.leave(k, g.Token)
		return g, err
	}
	v.waits = true
	g, err = c.acquire(ctx, v, k, ttl)
	if isUnknown(err) {
		c.abandon(k, held.Token)
	} else {
		c.claims.leave(k, g.Token)
	}
	return g, err
}

// abandon ends an acquire that may have won a grant with a token above another
// owner's. If no other acquire can have an interest in that grant, it is
// released, and acquires wait until that is done.
func (c *Client) abandon(k claimKey, above uint64) {
	clearing := make(chan struct{})
	alone := false
	c.claims.with(k, func(cl *claim) {
		above = max(above, cl.used)
		cl.acquires--
		if alone = cl.acquires == 0 && cl.clearing == nil; alone {
			cl.clearing = clearing
		}
	})
	if !alone {
		return // the other one is served with the same grant
	}
	c.calls.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), clearTime)
		defer cancel()
		c.clear(ctx, k, above)
		c.claims.with(k, func(cl *claim) { cl.clearing = nil })
		close(clearing)
	})
}

// clear releases the grant of k if its token is larger than above.
func (c *Client) clear(ctx context.Context, k claimKey, above uint64) {
	resp, err := c.get(ctx, k.name, false)
	if err != nil {
		return
	}
	if r := wire.Record(resp.GetLease()); r.Owner == k.owner && r.Token > above {
		v := call{what: fmt.Sprintf("release lease %q", k.name)}
		_ = c.release(ctx, v, k, r.Token) // remembered when its outcome is unknown
	}
}
