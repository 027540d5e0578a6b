package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/raftlease/raftlease/client"
	"github.com/raftlease/raftlease/lease"
)

func (c *cli) renewCommand() *cobra.Command {
	var id identity
	var ttl time.Duration
	cmd := &cobra.Command{
		Use:   "renew NAME",
		Short: "Extend a grant",
		Long: `Extends exactly the grant with this owner and token by ttl from now. A shorter ttl
than before never shortens what was promised.

Exit code 74 means that the grant is over, also when it expired and nobody has
taken the lease since.`,
		Example: `  raftlease renew nightly-report --owner "$HOSTNAME" --token 7 --ttl 30s`,
		Args:    cobra.ExactArgs(1),
		RunE: c.asks(func(ctx context.Context, to *client.Client, args []string) error {
			g, err := to.Renew(ctx, id.grant(args[0]), ttl)
			if err != nil {
				return err
			}
			return c.showGrant(g)
		}),
	}
	id.flags(cmd.Flags())
	cmd.Flags().DurationVar(&ttl, "ttl", lease.DefaultTTL, "how long the grant lasts from now on")
	return cmd
}
