package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/raftlease/raftlease"
)

const defaultTimeout = 10 * time.Second

// streams are the standard streams of a command.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// cli is one command line being carried out.
type cli struct {
	streams
	env func(string) (string, bool)

	addrs   []string
	timeout time.Duration
	output  format

	variables map[string]string // by flag: the variable that set it
	began     bool              // the command line was understood
}

// run carries out a command line and returns the exit code. The command stops
// when ctx ends.
func run(ctx context.Context, args []string, s streams, env func(string) (string, bool)) int {
	c := &cli{streams: s, env: env, variables: map[string]string{}}
	root := c.root()
	root.SetArgs(args)
	root.SetIn(s.in)
	root.SetOut(s.out)
	root.SetErr(s.err)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitDone
	}
	if !c.began {
		err = usageError{err}
	}
	c.complain(cmd, err)
	return exitCode(err)
}

func (c *cli) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "raftlease",
		Short: "Strictly exclusive leases from a cluster of nodes",
		Long: `raftlease lets replicas agree which one of them may run a job. Nodes form a Raft
cluster; what they replicate is a table of leases with fencing tokens.

Exit codes: 0 done, 1 something went wrong, 2 the command line is wrong,
75 the lease is held by another owner, 74 the lease is lost, 69 the cluster is
unavailable and nothing was done, 70 the outcome is unknown.`,
		Example: `  raftlease demo --once
  raftlease node --id a --dir /var/lib/raftlease --listen 127.0.0.1:7400
  raftlease acquire nightly-report --owner "$HOSTNAME" --ttl 30s
  raftlease ls -o json`,
		Args:              cobra.ArbitraryArgs,
		SilenceUsage:      true,
		SilenceErrors:     true,
		Version:           raftlease.Version,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return c.fromEnvironment(cmd) },
		RunE:              c.onlyCommands,
	}
	flags := root.PersistentFlags()
	flags.StringSliceVar(&c.addrs, "addr", []string{"127.0.0.1:7400"}, "members of the cluster to ask, host:port,…")
	flags.DurationVar(&c.timeout, "timeout", defaultTimeout, "how long to try before the cluster counts as unavailable")
	flags.VarP(&c.output, "output", "o", "what stdout gets, table or json")
	variable(flags, "addr", "timeout", "output")
	root.AddCommand(
		c.nodeCommand(), c.acquireCommand(), c.renewCommand(), c.releaseCommand(), c.getCommand(), c.listCommand(),
		c.watchCommand(), c.putCommand(), c.clusterCommand(), c.demoCommand(), c.demoNodeCommand(), c.versionCommand(),
	)
	return root
}

// onlyCommands is what a command does that only has commands below it.
func (c *cli) onlyCommands(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	return usageError{fmt.Errorf("there is no command %q; there are:%s", args[0], commandNames(cmd))}
}

func commandNames(cmd *cobra.Command) string {
	var names string
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			names += " " + sub.Name()
		}
	}
	return names
}

// does makes a cobra function of what a command does. From there on, errors are
// not about the shape of the command line.
func (c *cli) does(f func(ctx context.Context, cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		c.began = true
		return c.inWordsOfFlags(cmd, f(cmd.Context(), cmd, args))
	}
}
