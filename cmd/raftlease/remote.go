package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/raftlease/raftlease/client"
	"github.com/raftlease/raftlease/lease"
)

// anyTTL leaves it to the cluster, which has limits of its own, what a ttl may
// be.
var anyTTL = lease.Limits{MinTTL: time.Millisecond, MaxTTL: 365 * 24 * time.Hour}

// asks makes a cobra function of a command that asks a cluster. Its ctx ends
// after --timeout.
func (c *cli) asks(f func(ctx context.Context, to *client.Client, args []string) error) func(*cobra.Command, []string) error {
	return c.does(func(ctx context.Context, _ *cobra.Command, args []string) error {
		to, err := c.connect()
		if err != nil {
			return err
		}
		defer to.Close()
		ctx, cancel := c.timed(ctx, c.timeout)
		defer cancel()
		return f(ctx, to, args)
	})
}

// connect returns a client of the cluster at --addr.
func (c *cli) connect() (*client.Client, error) {
	if c.timeout <= 0 {
		var f lease.Faults
		f.Add("timeout", c.timeout, "more than 0, such as 10s")
		return nil, f.Err()
	}
	return client.Open(client.Config{
		Addrs: c.addrs, Limits: anyTTL,
		// A member that does not answer must not use up the whole time.
		AttemptTimeout: min(c.timeout/2+1, 5*time.Second),
	})
}

// timed bounds ctx, and says so in errors.
func (c *cli) timed(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, limit, fmt.Errorf("no answer within %v", limit))
}
