package client

import (
	"context"
	"fmt"
	"sync"

	pb "github.com/raftlease/raftlease/transport/rpc/raftleasev1"
)

// claimKey is what an acquire is for.
type claimKey struct{ name, owner string }

// claim is what a client must remember of one name and owner. It exists while
// there is something to remember.
type claim struct {
	acquires int           // calls under way
	used     uint64        // the largest token that one of them returned since there are any
	doubt    uint64        // the token of a release whose outcome is unknown; 0 for none
	clearing chan struct{} // closed when a grant that a waiter left behind is cleared; nil when nothing is
}

// claims keeps acquires away from releases that would end what they won. Safe
// for concurrent use.
type claims struct {
	mu sync.Mutex
	by map[claimKey]*claim
}

func newClaims() claims { return claims{by: map[claimKey]*claim{}} }

// with runs f on the claim of k, which it makes and forgets as needed.
func (s *claims) with(k claimKey, f func(*claim)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	cl := s.by[k]
	if cl == nil {
		cl = &claim{}
		s.by[k] = cl
	}
	f(cl)
	if cl.acquires == 0 {
		cl.used = 0
		if cl.doubt == 0 && cl.clearing == nil {
			delete(s.by, k)
		}
	}
}

// leave ends an acquire that returned token, 0 for none.
func (s *claims) leave(k claimKey, token uint64) {
	s.with(k, func(cl *claim) {
		cl.acquires--
		cl.used = max(cl.used, token)
	})
}

// enter begins an acquire. While a release of unknown outcome is about, the
// store may answer with the grant that it is going to end, so that comes first.
// On an error nothing was asked for and there is nothing to leave.
func (c *Client) enter(ctx context.Context, v call, k claimKey) error {
	for {
		var clearing chan struct{}
		var doubt uint64
		c.claims.with(k, func(cl *claim) {
			clearing, doubt = cl.clearing, cl.doubt
			if clearing == nil && doubt == 0 {
				cl.acquires++
			}
		})
		switch {
		case clearing != nil:
			select {
			case <-clearing:
			case <-ctx.Done():
				return v.ended(ctx, false, fmt.Errorf("a grant that owner %q may have left behind is being released", k.owner))
			}
		case doubt != 0:
			if err := c.release(ctx, v, k, doubt); err != nil {
				return v.ended(ctx, false, fmt.Errorf("a release of token %d has to be settled before: %w", doubt, err))
			}
		default:
			return nil
		}
	}
}

// release releases a grant and remembers it while the outcome is unknown.
func (c *Client) release(ctx context.Context, v call, k claimKey, token uint64) error {
	req := &pb.ReleaseRequest{Name: k.name, Owner: k.owner, Token: token}
	err := c.do(ctx, v, func(ctx context.Context, addr string) error {
		_, err := c.rpc.Lease(addr).Release(ctx, req)
		return err
	})
	unsettled := isUnknown(err)
	if err == nil || unsettled {
		c.claims.with(k, func(cl *claim) {
			switch {
			case unsettled:
				cl.doubt = max(cl.doubt, token)
			case cl.doubt <= token: // what was granted before is over too
				cl.doubt = 0
			}
		})
	}
	return err
}
