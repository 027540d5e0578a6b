package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/raftlease/raftlease/client"
)

// breakView is raftlease.v1.BreakResponse with the name.
type breakView struct {
	Name  string `json:"name"`
	Owner string `json:"owner"`
	Token uint64 `json:"token"`
}

func (c *cli) breakCommand() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "break NAME --yes",
		Short: "End a grant that its holder does not give back",
		Long: `Ends the live grant of the lease NAME, whoever holds it, so that others can acquire
it at once. The holder goes on believing in it until it renews or its deadline
passes: until then two may be at work, unless the resource compares tokens. For a
holder that is known to be dead, when its ttl is too long to wait for.`,
		Example: "  raftlease get nightly-report\n  raftlease cluster break nightly-report --yes",
		Args:    cobra.ExactArgs(1),
		RunE: c.asks(func(ctx context.Context, to *client.Client, args []string) error {
			if !yes {
				return usageError{errors.New("two holders may be at work after a break; say --yes if the present one is known to be dead")}
			}
			owner, token, err := to.Break(ctx, args[0])
			if err != nil {
				return err
			}
			return c.show(breakView{args[0], owner, token}, func(w io.Writer) {
				fmt.Fprintf(w, "The grant of %q to %q with token %d was ended.\n", args[0], owner, token)
			})
		}),
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do it")
	return cmd
}
