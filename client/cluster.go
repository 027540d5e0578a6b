package client

import (
	"context"
	"fmt"

	"github.com/raftlease/raftlease/lease"
	pb "github.com/raftlease/raftlease/transport/rpc/raftleasev1"
)

// Status returns what the member at addr, "host:port", knows of itself and its
// cluster. That member is asked once, and need not be one of Config.Addrs:
// ErrUnavailable when it does not answer. With addr "" it is any member, as in
// all other calls.
func (c *Client) Status(ctx context.Context, addr string) (Status, error) {
	v := call{what: "status", reads: true, only: addr}
	if addr != "" {
		v.what = fmt.Sprintf("status of %q", addr)
		var f lease.Faults
		checkAddr(&f, "addr", addr)
		if err := f.Err(); err != nil {
			return Status{}, err
		}
	}
	var s Status
	err := c.operate(ctx, v, func(ctx context.Context, addr string) error {
		resp, err := c.rpc.Cluster(addr).Status(ctx, &pb.StatusRequest{})
		if err == nil {
			s = statusOf(resp)
		}
		return err
	})
	return s, err
}

// AddMember adds a member without a vote. It asks for its vote by itself when it
// has caught up. The address is the one at which the others reach it.
func (c *Client) AddMember(ctx context.Context, id, address string) error {
	var f lease.Faults
	checkID(&f, id)
	checkAddr(&f, "address", address)
	if err := f.Err(); err != nil {
		return err
	}
	v := call{what: fmt.Sprintf("add member %q", id)}
	return c.operate(ctx, v, func(ctx context.Context, addr string) error {
		_, err := c.rpc.Cluster(addr).AddMember(ctx, &pb.AddMemberRequest{Id: id, Address: address})
		return err
	})
}

// RemoveMember removes a member from the cluster. Its leases keep their promise
// until their ttl.
func (c *Client) RemoveMember(ctx context.Context, id string) error {
	v := call{what: fmt.Sprintf("remove member %q", id)}
	return c.onMember(ctx, v, id, func(ctx context.Context, addr string) error {
		_, err := c.rpc.Cluster(addr).RemoveMember(ctx, &pb.RemoveMemberRequest{Id: id})
		return err
	})
}

// Promote makes a member that has caught up a voter.
func (c *Client) Promote(ctx context.Context, id string) error {
	v := call{what: fmt.Sprintf("promote member %q", id)}
	return c.onMember(ctx, v, id, func(ctx context.Context, addr string) error {
		_, err := c.rpc.Cluster(addr).Promote(ctx, &pb.PromoteRequest{Id: id})
		return err
	})
}

// Transfer hands leadership over to the voter with the id to, or to the most
// caught-up one when that is "". It returns the new leader's id.
func (c *Client) Transfer(ctx context.Context, to string) (leaderID string, err error) {
	v := call{what: "transfer leadership"}
	if to != "" {
		var f lease.Faults
		checkID(&f, to)
		if err := f.Err(); err != nil {
			return "", err
		}
		v.what = fmt.Sprintf("transfer leadership to %q", to)
	}
	err = c.operate(ctx, v, func(ctx context.Context, addr string) error {
		resp, err := c.rpc.Cluster(addr).Transfer(ctx, &pb.TransferRequest{To: to})
		if err == nil {
			leaderID = resp.GetLeaderId()
		}
		return err
	})
	return leaderID, err
}

// Break ends the live grant of name, whoever has it, and returns whose it was.
// The holder goes on believing in it until it renews or its deadline passes, so
// two may act at once. ErrNotFound when the name is free. Unlike all other
// calls it is not repeated by the client when its outcome is unknown, and should
// not be without a look: it would break the grant of the next holder.
func (c *Client) Break(ctx context.Context, name string) (owner string, token uint64, err error) {
	if err := lease.CheckName(name); err != nil {
		return "", 0, err
	}
	v := call{what: fmt.Sprintf("break lease %q", name), once: true}
	err = c.operate(ctx, v, func(ctx context.Context, addr string) error {
		resp, err := c.rpc.Cluster(addr).Break(ctx, &pb.BreakRequest{Name: name})
		if err == nil {
			owner, token = resp.GetOwner(), resp.GetToken()
		}
		return err
	})
	return owner, token, err
}

func (c *Client) onMember(ctx context.Context, v call, id string, send sender) error {
	var f lease.Faults
	checkID(&f, id)
	if err := f.Err(); err != nil {
		return err
	}
	return c.operate(ctx, v, send)
}

func (c *Client) operate(ctx context.Context, v call, send sender) error {
	ctx, end, err := c.begin(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", v.what, err)
	}
	defer end()
	return c.do(ctx, v, send)
}

// checkID checks the id of a member; what else it has to be is the cluster's
// decision.
func checkID(f *lease.Faults, id string) {
	if id == "" || len(id) > lease.MaxNameLen {
		f.Add("id", id, fmt.Sprintf("1 to %d bytes", lease.MaxNameLen))
	}
}
