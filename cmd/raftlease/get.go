package main

import (
	"context"
	"fmt"
	"io"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/raftlease/raftlease/client"
	"github.com/raftlease/raftlease/lease"
)

// shownData is the most of a value that a table shows.
const shownData = 200

// getView is raftlease.v1.GetResponse.
type getView struct {
	Lease        leaseView `json:"lease"`
	AppliedIndex uint64    `json:"appliedIndex,omitzero"`
}

func (c *cli) getCommand() *cobra.Command {
	var stale bool
	cmd := &cobra.Command{
		Use:   "get NAME",
		Short: "Show who holds a lease, and the data kept with it",
		Long: `Shows the lease NAME as it was at some moment during the call. With --stale, as
whichever member answers knows it, without asking the leader: also without a
majority, but perhaps old, and without the time that remains.

A lease that is free and has no data is not found, exit code 1.`,
		Example: `  raftlease get nightly-report
  raftlease get nightly-report -o json | jq -r '.lease.data | @base64d'`,
		Args: cobra.ExactArgs(1),
		RunE: c.asks(func(ctx context.Context, to *client.Client, args []string) error {
			var r lease.Record
			var index uint64
			var err error
			if stale {
				r, index, err = to.GetStale(ctx, args[0])
			} else {
				r, err = to.Get(ctx, args[0])
			}
			if err != nil {
				return err
			}
			return c.show(getView{viewLease(r), index}, func(w io.Writer) {
				tableOfRecord(w, r)
				if stale {
					row(w, "as of index", index)
				}
			})
		}),
	}
	staleFlag(cmd, &stale)
	return cmd
}

func staleFlag(cmd *cobra.Command, stale *bool) {
	cmd.Flags().BoolVar(stale, "stale", false, "what the answering member knows, without asking the leader")
}

func tableOfRecord(w io.Writer, r lease.Record) {
	row(w, "name", r.Name)
	if r.Held() {
		row(w, "owner", r.Owner)
		row(w, "token", r.Token)
		row(w, "ttl", r.TTL)
		if r.Remaining > 0 {
			row(w, "remaining", short(r.Remaining))
		}
	} else {
		row(w, "owner", "nobody")
	}
	if len(r.Data) > 0 {
		row(w, "data", dataAsText(r.Data))
		row(w, "data token", r.DataToken)
	}
	if r.Index > 0 {
		row(w, "index", r.Index)
	}
}

// dataAsText shows short text, and the size of everything else.
func dataAsText(data []byte) string {
	text := string(data)
	if len(text) > shownData || !utf8.ValidString(text) {
		return bytes(len(data))
	}
	for _, r := range text {
		if !unicode.IsPrint(r) {
			return fmt.Sprintf("%q", text)
		}
	}
	return text
}
