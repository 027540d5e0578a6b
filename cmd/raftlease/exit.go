package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/raftlease/raftlease/lease"
)

// Exit codes. Those above 63 are of sysexits.h, where their meaning comes close.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitUnavailable = 69
	exitUnknown     = 70
	exitLost        = 74
	exitHeld        = 75
)

// usageError is an error of the command line.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// plainError keeps what is wrong with a node from being taken for an answer of
// a cluster.
type plainError struct{ error }

// exitCode is the exit code of an error. An unknown outcome goes before
// everything that may have led to it.
func exitCode(err error) int {
	var usage usageError
	var plain plainError
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &usage), errors.Is(err, lease.ErrInvalid):
		return exitUsage
	case errors.As(err, &plain):
		return exitFailed
	case errors.Is(err, lease.ErrUnknownOutcome):
		return exitUnknown
	case errors.Is(err, errInterrupted):
		return exitFailed
	case errors.Is(err, lease.ErrHeld):
		return exitHeld
	case errors.Is(err, lease.ErrLost):
		return exitLost
	case errors.Is(err, lease.ErrUnavailable), errors.Is(err, lease.ErrClosed):
		return exitUnavailable
	}
	return exitFailed
}

// complain says on stderr what went wrong and what to do about it.
func (c *cli) complain(cmd *cobra.Command, err error) {
	fmt.Fprintf(c.err, "raftlease: %v\n", err)
	if advice := c.advice(cmd, err); advice != "" {
		fmt.Fprintln(c.err, advice)
	}
}

func (c *cli) advice(cmd *cobra.Command, err error) string {
	addrs := strings.Join(c.addrs, ",")
	switch exitCode(err) {
	case exitUsage:
		return fmt.Sprintf("See %q.", cmd.CommandPath()+" --help")
	case exitHeld:
		return "Wait for it with --wait 1m, or try again later."
	case exitLost:
		return "Stop what was done under this grant. Acquire again for a new one."
	case exitUnknown:
		if cmd.Name() == "break" {
			return fmt.Sprintf("It may have been done. Look who holds the lease (raftlease get NAME --addr %s) before it is repeated.", addrs)
		}
		return "It may have been done. To repeat the same command is safe."
	case exitUnavailable:
		return fmt.Sprintf("Nothing was done. It takes a majority of the nodes; see which are up: raftlease cluster status --addr %s", addrs)
	}
	if errors.Is(err, lease.ErrNotFound) {
		return fmt.Sprintf("See what leases there are: raftlease ls --addr %s", addrs)
	}
	return ""
}
