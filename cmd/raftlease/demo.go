package main

import (
	"context"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/raftlease/raftlease/cmd/raftlease/demo"
)

func (c *cli) demoCommand() *cobra.Command {
	var once, lines bool
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Watch three nodes pass a job on through a crash, a freeze and a cut",
		Long: `Starts three nodes on loopback, each a process of its own with real data and a
worker beside it, and one job that ticks while its lease is held. Then the leader,
which holds the lease, is killed; the next holder is frozen for longer than its
lease; and the one after that is cut off the network. What happens is told with
times and tokens, and every promise is checked.

With --once it ends by itself, after about half a minute, with exit code 0 only if
every promise held. Otherwise it goes on ticking until Ctrl-C. Nothing is left
behind.`,
		Example: `  raftlease demo
  raftlease demo --once --json | jq -r 'select(.event == "verdict").text'`,
		Args: cobra.NoArgs,
		RunE: c.does(func(ctx context.Context, _ *cobra.Command, _ []string) error {
			err := demo.Run(ctx, demo.Config{Once: once, JSON: lines || c.output.json, Color: c.colored(), Out: c.out})
			if err != nil {
				return plainError{err}
			}
			return nil
		}),
	}
	cmd.Flags().BoolVar(&once, "once", false, "end after the verdict")
	cmd.Flags().BoolVar(&lines, "json", false, "JSON lines, as with -o json")
	return cmd
}

// demoNodeCommand is what the demo runs its nodes with.
func (c *cli) demoNodeCommand() *cobra.Command {
	return &cobra.Command{
		Use:    demo.Command,
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: c.does(func(ctx context.Context, _ *cobra.Command, _ []string) error {
			if err := demo.Child(ctx, c.in, c.out, c.err); err != nil {
				return plainError{err}
			}
			return nil
		}),
	}
}

// colored reports whether stdout is a terminal whose user wants colours.
func (c *cli) colored() bool {
	if none, ok := c.env("NO_COLOR"); ok && none != "" {
		return false
	}
	if term, _ := c.env("TERM"); term == "" || term == "dumb" {
		return false
	}
	return isTerminal(c.out)
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
