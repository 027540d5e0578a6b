package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/raftlease/raftlease/client"
)

func (c *cli) releaseCommand() *cobra.Command {
	var id identity
	cmd := &cobra.Command{
		Use:   "release NAME",
		Short: "End a grant, so that others can acquire the lease at once",
		Long: `Ends exactly the grant with this owner and token. That it had ended before is no
error: afterwards it is over in any case, and no other grant is touched.`,
		Example: `  raftlease release nightly-report --owner "$HOSTNAME" --token 7`,
		Args:    cobra.ExactArgs(1),
		RunE: c.asks(func(ctx context.Context, to *client.Client, args []string) error {
			g := id.grant(args[0])
			if err := to.Release(ctx, g); err != nil {
				return err
			}
			return c.show(viewGrant(g), func(w io.Writer) {
				fmt.Fprintf(w, "The grant of %q to %q with token %d is over.\n", g.Name, g.Owner, g.Token)
			})
		}),
	}
	id.flags(cmd.Flags())
	return cmd
}
