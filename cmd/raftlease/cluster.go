package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/raftlease/raftlease/client"
)

func (c *cli) clusterCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cluster",
		Short: "Look at the cluster and change it",
		Example: `  raftlease cluster status
  raftlease cluster add d 10.0.0.4:7400
  raftlease cluster transfer b`,
		Args: cobra.ArbitraryArgs,
		RunE: c.onlyCommands,
	}
	cmd.AddCommand(c.statusCommand(), c.addCommand(), c.removeCommand(), c.promoteCommand(), c.transferCommand(), c.breakCommand())
	return cmd
}

// memberView names a member.
type memberView struct {
	ID      string `json:"id"`
	Address string `json:"address,omitempty"`
}

func (c *cli) addCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "add ID ADDRESS",
		Short: "Add a member, or give one a new address",
		Long: `Adds the node ID, which the others reach at ADDRESS, without a vote. It becomes a
voter by itself when it has caught up, once it was started with --join. Adding a
member again gives it a new address.`,
		Example: `  raftlease cluster add d 127.0.0.1:7403
  raftlease node --id d --dir d --listen 127.0.0.1:7403 --join 127.0.0.1:7400`,
		Args: cobra.ExactArgs(2),
		RunE: c.asks(func(ctx context.Context, to *client.Client, args []string) error {
			if err := to.AddMember(ctx, args[0], args[1]); err != nil {
				return err
			}
			return c.show(memberView{args[0], args[1]}, func(w io.Writer) {
				fmt.Fprintf(w, "Member %s at %s is in the cluster. It gets its vote when it has caught up.\n", line(args[0]), line(args[1]))
			})
		}),
	}
}

func (c *cli) removeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "remove ID",
		Short: "Take a member out of the cluster",
		Long: `Takes the node ID out of the cluster; it stops. Leases that it owns keep their
promise until their ttl. Removing one that is no member is no error.`,
		Example: "  raftlease cluster remove d",
		Args:    cobra.ExactArgs(1),
		RunE: c.asks(func(ctx context.Context, to *client.Client, args []string) error {
			if err := to.RemoveMember(ctx, args[0]); err != nil {
				return err
			}
			return c.show(memberView{ID: args[0]}, func(w io.Writer) {
				fmt.Fprintf(w, "%s is no member of the cluster.\n", line(args[0]))
			})
		}),
	}
}

func (c *cli) promoteCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "promote ID",
		Short:   "Give a member that has caught up its vote",
		Long:    "Makes the member ID a voter. Members ask for that by themselves, so it is seldom needed.",
		Example: "  raftlease cluster promote d",
		Args:    cobra.ExactArgs(1),
		RunE: c.asks(func(ctx context.Context, to *client.Client, args []string) error {
			if err := to.Promote(ctx, args[0]); err != nil {
				return err
			}
			return c.show(memberView{ID: args[0]}, func(w io.Writer) { fmt.Fprintf(w, "Member %s is a voter.\n", line(args[0])) })
		}),
	}
}

// transferView is raftlease.v1.TransferResponse.
type transferView struct {
	LeaderID string `json:"leaderId"`
}

func (c *cli) transferCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "transfer [ID]",
		Short: "Hand leadership to another member",
		Long: `Hands leadership to the voter ID, or to the one that has caught up best. No holder
of a lease notices.`,
		Example: "  raftlease cluster transfer\n  raftlease cluster transfer b",
		Args:    cobra.MaximumNArgs(1),
		RunE: c.asks(func(ctx context.Context, to *client.Client, args []string) error {
			leader, err := to.Transfer(ctx, optional(args))
			if err != nil {
				return err
			}
			return c.show(transferView{leader}, func(w io.Writer) { fmt.Fprintf(w, "Member %s leads.\n", line(leader)) })
		}),
	}
}
