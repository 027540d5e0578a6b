// Command raftlease runs a node of a cluster that grants leases, and asks a
// running cluster from the shell.
//
// What is promised: results go to stdout and everything else to stderr, with
// -o json stdout is JSON and nothing but that, and the exit code tells a refusal
// (75 held by another, 74 lost) from a cluster that does not answer (69) and from
// an outcome that nobody knows (70), as the errors of package lease do (G6).
//
// What is not: a command that acquires a lease does not keep it. The grant ends
// with its ttl unless somebody renews it.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// errInterrupted is the cause of a context that a signal ended.
var errInterrupted = errors.New("interrupted")

func main() {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() { // ends with the process
		s := <-signals
		cancel(fmt.Errorf("%w by signal %v", errInterrupted, s))
		<-signals
		fmt.Fprintln(os.Stderr, "raftlease: second signal, exiting at once")
		os.Exit(exitFailed)
	}()
	os.Exit(run(ctx, os.Args[1:], streams{in: os.Stdin, out: os.Stdout, err: os.Stderr}, os.LookupEnv))
}
