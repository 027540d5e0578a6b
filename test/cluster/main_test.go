package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/raftlease/raftlease"
	"github.com/raftlease/raftlease/lease"
)

// nodeEnv makes this test binary a node: its value says which.
const nodeEnv = "RAFTLEASE_TEST_NODE"

// program says what a node process does.
type program struct {
	ID, Dir, Listen string
	Peers           map[string]string
	Job             string        // the name of a lease to hold; empty for none
	TTL             time.Duration // of that lease
}

// report is one line that a node process writes.
type report struct {
	What  string // ready, acquired, renewed, lost
	Token uint64 `json:",omitempty"`
	Owner string `json:",omitempty"`
	// Sent is when the acquire or renewal was sent, as Unix nanoseconds. All
	// processes are on one machine.
	Sent int64  `json:",omitempty"`
	Text string `json:",omitempty"`
}

func TestMain(m *testing.M) {
	if spec := os.Getenv(nodeEnv); spec != "" {
		if err := runNode(spec); err != nil {
			fmt.Fprintln(os.Stderr, "node process:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// runNode is a node process: it ends, in good order, when its standard input
// does.
func runNode(spec string) error {
	var p program
	if err := json.Unmarshal([]byte(spec), &p); err != nil {
		return err
	}
	n, err := raftlease.Open(raftlease.Config{ID: p.ID, Dir: p.Dir, Listen: p.Listen, Peers: p.Peers})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	if err := n.Ready(ctx); err != nil {
		return err
	}
	out := json.NewEncoder(os.Stdout)
	if err := out.Encode(report{What: "ready", Owner: n.Owner()}); err != nil {
		return err
	}
	if p.Job != "" {
		hold(ctx, n, p, out)
	}
	<-ctx.Done()
	return n.Close()
}

// hold acquires the lease and renews it for as long as it can.
func hold(ctx context.Context, n *raftlease.Node, p program, out *json.Encoder) {
	sent := time.Now()
	g, err := n.AcquireWait(ctx, p.Job, n.Owner(), p.TTL)
	if err != nil {
		_ = out.Encode(report{What: "lost", Text: err.Error()})
		return
	}
	_ = out.Encode(report{What: "acquired", Token: g.Token, Owner: g.Owner, Sent: sent.UnixNano()})
	tick := time.NewTicker(p.TTL / 10)
	defer tick.Stop()
	for ctx.Err() == nil {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		// G4: nothing may be believed past the deadline, whatever is answered.
		if err := g.Check(); err != nil {
			_ = out.Encode(report{What: "lost", Token: g.Token, Text: err.Error()})
			return
		}
		sent := time.Now()
		next, err := n.Renew(ctx, lease.Grant{Name: g.Name, Owner: g.Owner, Token: g.Token}, p.TTL)
		if err != nil {
			_ = out.Encode(report{What: "lost", Token: g.Token, Text: err.Error()})
			return
		}
		g = next
		_ = out.Encode(report{What: "renewed", Token: g.Token, Owner: g.Owner, Sent: sent.UnixNano()})
	}
}
