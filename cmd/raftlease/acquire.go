package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/raftlease/raftlease/client"
	"github.com/raftlease/raftlease/lease"
)

// lastTry is how long the try may take that follows a wait.
const lastTry = 3 * time.Second

func (c *cli) acquireCommand() *cobra.Command {
	var owner string
	var ttl, wait time.Duration
	cmd := &cobra.Command{
		Use:   "acquire NAME",
		Short: "Acquire a lease, or extend it if the owner has it already",
		Long: `Acquires the lease NAME for an owner and prints the grant with its fencing token.
If the owner already holds it, it is extended and keeps its token.

The grant ends after its ttl unless it is renewed; this command does not stay to
do that. Exit code 75 means that another owner holds it.`,
		Example: `  raftlease acquire nightly-report --owner "$HOSTNAME" --ttl 30s
  raftlease acquire nightly-report --owner "$HOSTNAME" --ttl 30s --wait 5m
  token=$(raftlease acquire nightly-report --owner "$HOSTNAME" -o json | jq .token)`,
		Args: cobra.ExactArgs(1),
		RunE: c.does(func(ctx context.Context, _ *cobra.Command, args []string) error {
			if err := checkAcquire(args[0], owner, ttl, wait); err != nil {
				return err
			}
			to, err := c.connect()
			if err != nil {
				return err
			}
			defer to.Close()
			g, err := c.acquire(ctx, to, args[0], owner, ttl, wait)
			if err != nil {
				return err
			}
			return c.showGrant(g)
		}),
	}
	cmd.Flags().StringVar(&owner, "owner", "", "who acquires it; unique to the process that does the work")
	cmd.Flags().DurationVar(&ttl, "ttl", lease.DefaultTTL, "how long the grant lasts")
	cmd.Flags().DurationVar(&wait, "wait", 0, "how long to wait while another owner holds it; 0 tries once")
	return cmd
}

func checkAcquire(name, owner string, ttl, wait time.Duration) error {
	var f lease.Faults
	f.Name(name)
	f.Owner(owner)
	f.TTL(ttl, anyTTL)
	if wait < 0 {
		f.Add("wait", wait, "0 or more")
	}
	return f.Err()
}

// acquire tries once, or waits. A wait that is over ends with another try,
// because only that says who holds the lease, and settles what is unknown.
func (c *cli) acquire(ctx context.Context, to *client.Client, name, owner string, ttl, wait time.Duration) (lease.Grant, error) {
	limit := c.timeout
	if wait > 0 {
		waiting, cancel := c.timed(ctx, wait)
		defer cancel()
		g, err := to.AcquireWait(waiting, name, owner, ttl)
		if err == nil || waiting.Err() == nil || ctx.Err() != nil || errors.Is(err, lease.ErrInvalid) {
			return g, err
		}
		limit = min(limit, lastTry)
	}
	ctx, cancel := c.timed(ctx, limit)
	defer cancel()
	return to.Acquire(ctx, name, owner, ttl)
}
