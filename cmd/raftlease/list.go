package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/raftlease/raftlease/client"
	"github.com/raftlease/raftlease/lease"
)

// listView is raftlease.v1.ListResponse.
type listView struct {
	Leases       []leaseView `json:"leases"`
	AppliedIndex uint64      `json:"appliedIndex,omitzero"`
}

func (c *cli) listCommand() *cobra.Command {
	var stale bool
	cmd := &cobra.Command{
		Use:   "ls [PREFIX]",
		Short: "List leases",
		Long: `Lists the leases whose names begin with PREFIX, in byte order of their names: those
that are held, and those that are free and have data. With --stale, as whichever
member answers knows them, without asking the leader.`,
		Example: `  raftlease ls
  raftlease ls reports/ -o json | jq -r '.leases[].name'`,
		Args: cobra.MaximumNArgs(1),
		RunE: c.asks(func(ctx context.Context, to *client.Client, args []string) error {
			prefix := optional(args)
			var rs []lease.Record
			var index uint64
			var err error
			if stale {
				rs, index, err = to.ListStale(ctx, prefix)
			} else {
				rs, err = to.List(ctx, prefix)
			}
			if err != nil {
				return err
			}
			v := listView{Leases: make([]leaseView, len(rs)), AppliedIndex: index}
			for i, r := range rs {
				v.Leases[i] = viewLease(r)
			}
			return c.show(v, func(w io.Writer) { tableOfRecords(w, rs, prefix) })
		}),
	}
	staleFlag(cmd, &stale)
	return cmd
}

func tableOfRecords(w io.Writer, rs []lease.Record, prefix string) {
	switch {
	case len(rs) > 0:
		row(w, "NAME", "OWNER", "TOKEN", "TTL", "REMAINING", "DATA")
		for _, r := range rs {
			rowOfRecord(w, r)
		}
	case prefix != "":
		fmt.Fprintf(w, "There is no lease whose name begins with %q.\n", prefix)
	default:
		fmt.Fprintln(w, "There is no lease.")
	}
}

// optional is an argument that may be missing.
func optional(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}
