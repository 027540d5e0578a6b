package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/raftlease/raftlease/client"
	"github.com/raftlease/raftlease/lease"
)

// value is where a put takes its data from.
type value struct {
	text, file string
}

func (c *cli) putCommand() *cobra.Command {
	var id identity
	var v value
	cmd := &cobra.Command{
		Use:   "put NAME",
		Short: "Keep data with a lease, as its holder",
		Long: `Replaces the data kept with the lease NAME, such as how far a job has come, if the
grant with this owner and token is the live one, in one step with that check: a
stale token never writes. The data outlives the grant, and the next holder reads
it with get. At most 64 KiB.

The data is --data, the content of --file, or standard input. --data "" removes
it. Exit code 74 means that the grant is over and nothing was written.`,
		Example: `  raftlease put nightly-report --owner "$HOSTNAME" --token 7 --data page=41
  raftlease put nightly-report --owner "$HOSTNAME" --token 7 < checkpoint.json`,
		Args: cobra.ExactArgs(1),
	}
	cmd.RunE = c.asks(func(ctx context.Context, to *client.Client, args []string) error {
		g := id.grant(args[0])
		if err := lease.CheckGrant(g); err != nil {
			return err
		}
		data, err := v.read(c.in, cmd.Flags().Changed("data"))
		if err != nil {
			return err
		}
		if err := to.Put(ctx, g, data); err != nil {
			return err
		}
		return c.show(viewGrant(g), func(w io.Writer) {
			fmt.Fprintf(w, "%s kept with %q by token %d.\n", bytes(len(data)), g.Name, g.Token)
		})
	})
	id.flags(cmd.Flags())
	cmd.Flags().StringVar(&v.text, "data", "", "the data itself")
	cmd.Flags().StringVar(&v.file, "file", "", "a file with the data; - for standard input")
	cmd.MarkFlagsMutuallyExclusive("data", "file")
	return cmd
}

// read returns the data. It reads no more than what tells that it is too much.
// Empty input is refused: a job whose input broke off must not erase what is
// kept.
func (v value) read(stdin io.Reader, given bool) ([]byte, error) {
	if given {
		return []byte(v.text), nil
	}
	from, name := stdin, "standard input"
	if v.file != "" && v.file != "-" {
		f, err := os.Open(v.file)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		from, name = f, v.file
	}
	data, err := io.ReadAll(io.LimitReader(from, lease.MaxDataLen+1))
	if err == nil && len(data) == 0 {
		err = errors.New(`there is nothing; give --data, or --data "" to remove what is kept`)
	}
	if err != nil {
		return nil, usageError{fmt.Errorf("read data from %s: %w", name, err)}
	}
	if len(data) > lease.MaxDataLen {
		return nil, usageError{fmt.Errorf("read data from %s: it is longer than %d bytes, the most that is kept with a lease", name, lease.MaxDataLen)}
	}
	return data, nil
}
