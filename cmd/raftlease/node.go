package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sort"
	"strings"
	"sync"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"

	"github.com/raftlease/raftlease"
	"github.com/raftlease/raftlease/lease"
)

func (c *cli) nodeCommand() *cobra.Command {
	var cfg raftlease.Config
	level := "info"
	cmd := &cobra.Command{
		Use:   "node",
		Short: "Run one node",
		Long: `Runs one node of a cluster until it is interrupted. Without --peers and --join it is
a cluster of its own. With --peers it forms a cluster when all of them are up,
and finds its way back into it after every restart. With --join it enters a
running cluster as a new member, to which it was added (raftlease cluster add).

The first SIGINT or SIGTERM hands leadership over and closes the node, exit
code 0; a second one ends the process at once. Exit code 1 means that the node
could not start, or had to stop by itself: the log on stderr says why.

There is no encryption and no authentication yet, so only loopback addresses are
taken unless --insecure says that every host in the network is trusted.`,
		Example: `  raftlease node --id a --dir /var/lib/raftlease --listen 127.0.0.1:7400

  peers=a=127.0.0.1:7400,b=127.0.0.1:7401,c=127.0.0.1:7402
  raftlease node --id a --dir a --listen 127.0.0.1:7400 --peers $peers
  RAFTLEASE_ID=b RAFTLEASE_DIR=b RAFTLEASE_LISTEN=127.0.0.1:7401 RAFTLEASE_PEERS=$peers raftlease node`,
		Args: cobra.NoArgs,
		RunE: c.does(func(ctx context.Context, _ *cobra.Command, _ []string) error {
			logger, err := newLogger(c.err, level)
			if err != nil {
				return err
			}
			cfg.Logger = logger
			return serve(ctx, cfg)
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&cfg.ID, "id", "", "name of the node within its cluster, for ever")
	flags.StringVar(&cfg.Dir, "dir", "", "data directory of this node alone")
	flags.StringVar(&cfg.Listen, "listen", "127.0.0.1:7400", "host:port of the one port for everything")
	flags.StringVar(&cfg.Advertise, "advertise", "", "host:port at which the others reach it, if that is another one")
	flags.Var((*peers)(&cfg.Peers), "peers", "the nodes that form the cluster, id=host:port,…; the same on all of them")
	flags.StringVar(&cfg.Join, "join", "", "host:port of a member of the cluster to join")
	flags.BoolVar(&cfg.Insecure, "insecure", false, "allow addresses that are not loopback, in plain text")
	flags.StringVar(&level, "log-level", level, "trace, debug, info, warn or error")
	variable(flags, "id", "dir", "listen", "advertise", "peers", "join", "insecure", "log-level")
	return cmd
}

func newLogger(w io.Writer, level string) (hclog.Logger, error) {
	l := hclog.LevelFromString(level)
	if l == hclog.NoLevel {
		var f lease.Faults
		f.Add("log-level", level, "trace, debug, info, warn or error")
		return nil, f.Err()
	}
	return hclog.New(&hclog.LoggerOptions{Name: "raftlease", Level: l, Output: w}), nil
}

// serve runs a node until ctx ends or the node does.
func serve(ctx context.Context, cfg raftlease.Config) error {
	n, err := raftlease.Open(cfg)
	if errors.Is(err, lease.ErrInvalid) {
		return err
	}
	if err != nil {
		return plainError{err}
	}
	waiting, cancel := context.WithCancel(ctx)
	var ready sync.WaitGroup
	ready.Go(func() {
		if n.Ready(waiting) == nil {
			cfg.Logger.Info("node is ready", "addr", n.Addr(), "leader", n.Status().Leader)
		}
	})
	select {
	case <-ctx.Done():
		cfg.Logger.Info("closing node", "why", context.Cause(ctx))
	case <-n.Done():
	}
	cancel()
	ready.Wait()
	closed := n.Close()
	if err := n.Err(); err != nil {
		return plainError{fmt.Errorf("node %q had to stop: %w", cfg.ID, err)}
	}
	if closed != nil {
		return plainError{fmt.Errorf("close node %q: %w", cfg.ID, closed)}
	}
	return nil
}

// peers is id=host:port,… as a pflag.Value.
type peers map[string]string

// String implements pflag.Value.
func (p *peers) String() string {
	var parts []string
	for id, addr := range *p {
		parts = append(parts, id+"="+addr)
	}
	sort.Strings(parts)
	return strings.Join(parts, ",")
}

// Set implements pflag.Value. It replaces what was set before.
func (p *peers) Set(s string) error {
	set := map[string]string{}
	for part := range strings.SplitSeq(s, ",") {
		id, addr, ok := strings.Cut(strings.TrimSpace(part), "=")
		if !ok {
			return fmt.Errorf("%q is not id=host:port", part)
		}
		if _, twice := set[id]; twice {
			return fmt.Errorf("node %q is there twice", id)
		}
		set[id] = addr
	}
	*p = set
	return nil
}

// Type implements pflag.Value.
func (p *peers) Type() string { return "id=addr,…" }
