package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/raftlease/raftlease/internal/wire"
	"github.com/raftlease/raftlease/lease"
)

// eventView is raftlease.v1.WatchResponse.
type eventView struct {
	Index uint64     `json:"index"`
	Kind  string     `json:"kind"`
	Lease *leaseView `json:"lease,omitempty"`
}

func (c *cli) watchCommand() *cobra.Command {
	var after uint64
	cmd := &cobra.Command{
		Use:   "watch [PREFIX]",
		Short: "Print every change of leases, until interrupted",
		Long: `Prints the leases whose names begin with PREFIX and then every change of them, a
line each, until interrupted. Renewals change nothing that is recorded and are
not printed.

When its member fails it goes on at another one, without loss or repetition.
With --after it resumes behind an index; if the changes since then are no longer
kept, it begins with the present state again.`,
		Example: `  raftlease watch
  raftlease watch reports/ -o json | jq -c '[.kind, .lease.name, .lease.owner]'`,
		Args: cobra.MaximumNArgs(1),
		RunE: c.does(func(ctx context.Context, _ *cobra.Command, args []string) error {
			return c.watch(ctx, optional(args), after)
		}),
	}
	cmd.Flags().Uint64Var(&after, "after", 0, "resume behind this index; 0 begins with the present state")
	return cmd
}

func (c *cli) watch(ctx context.Context, prefix string, after uint64) error {
	if err := lease.CheckPrefix(prefix); err != nil {
		return err
	}
	to, err := c.connect()
	if err != nil {
		return err
	}
	defer to.Close()
	// The watch itself waits for a cluster for as long as it takes.
	asking, cancel := c.timed(ctx, c.timeout)
	defer cancel()
	if _, err := to.Status(asking, ""); err != nil {
		return err
	}
	err = to.Watch(ctx, prefix, after, c.showEvent)
	if ctx.Err() != nil && errors.Is(context.Cause(ctx), errInterrupted) {
		return nil
	}
	return err
}

func (c *cli) showEvent(e lease.Event) error {
	if c.output.json {
		v := eventView{Index: e.Index, Kind: wire.WatchResponse(e).GetKind().String()}
		if e.Kind != lease.EventSynced {
			l := viewLease(e.Record)
			v.Lease = &l
		}
		text, err := json.Marshal(v)
		if err == nil {
			_, err = fmt.Fprintf(c.out, "%s\n", text)
		}
		return err
	}
	r := e.Record
	text := fmt.Sprintf("%8d  %-8s", e.Index, e.Kind)
	switch {
	case e.Kind == lease.EventSynced:
		text += "  that is the present state; changes follow"
	case e.Kind == lease.EventData:
		text += fmt.Sprintf("  %s  %s, written with token %d", r.Name, bytes(len(r.Data)), r.DataToken)
	case r.Held():
		text += fmt.Sprintf("  %s  owner %s  token %d  ttl %v", r.Name, r.Owner, r.Token, r.TTL)
	default:
		text += fmt.Sprintf("  %s  held by nobody, %s", r.Name, bytes(len(r.Data)))
	}
	_, err := fmt.Fprintln(c.out, text)
	return err
}
