package demo

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/raftlease/raftlease"
)

// child is one process of the demo: a node, and a worker beside it.
type child struct {
	logger hclog.Logger

	mu  sync.Mutex // guards out
	out *json.Encoder

	// These are set before the first order but orderWhose is obeyed.
	worker *worker
	node   *raftlease.Node

	transfers chan string // who shall lead
}

const (
	look          = 50 * time.Millisecond // how often a child looks at the state of its node
	transferLimit = 5 * time.Second
)

// Child is what a process does that the demo has started. It returns when its
// node has stopped, and when in ends, which is how a child notices that the demo
// is gone. In between it is killed, like everything in this piece.
func Child(ctx context.Context, in io.Reader, out, log io.Writer) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	c := &child{
		out:    json.NewEncoder(out),
		logger: hclog.New(&hclog.LoggerOptions{Output: log, Level: hclog.Warn}),

		transfers: make(chan string, 1),
	}
	orders := bufio.NewScanner(in)
	first, err := nextOrder(orders)
	if err != nil || first.Part == nil {
		return fmt.Errorf("stdin has no order %q on its first line (%v): this command is for the demo alone", orderStart, err)
	}
	opened := make(chan struct{})
	go func() { // ends with in, at the latest with the process
		cancel(fmt.Errorf("orders ended: %w", c.obey(ctx, orders, opened)))
	}()
	return c.play(ctx, *first.Part, opened)
}

// play opens the node and works until ctx ends or the node does.
func (c *child) play(ctx context.Context, p Part, opened chan<- struct{}) error {
	n, err := raftlease.Open(raftlease.Config{ID: p.ID, Dir: p.Dir, Listen: p.Listen, Peers: p.Peers, Logger: c.logger})
	if err != nil {
		c.report(report{Kind: reportFailed, Why: err.Error()})
		return err
	}
	defer n.Close()
	c.node = n
	c.worker = &worker{part: p, node: n, report: c.report, waiting: map[uint64]chan bool{}}
	close(opened)

	working, finish := context.WithCancel(ctx)
	var beside sync.WaitGroup
	beside.Go(func() { c.tellState(working) })
	beside.Go(func() {
		if err := c.worker.run(working); err != nil && working.Err() == nil {
			c.report(report{Kind: reportFailed, Why: err.Error()})
		}
	})
	beside.Go(func() { c.transfer(working) })
	defer beside.Wait()
	defer finish()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-n.Done():
		c.report(report{Kind: reportFailed, Why: fmt.Sprint(n.Err())})
		return n.Err()
	}
}

// tellState reports the state of the node whenever it changes.
func (c *child) tellState(ctx context.Context) {
	ticks := time.NewTicker(look)
	defer ticks.Stop()
	var last report
	for {
		s := c.node.Status()
		r := report{Kind: reportState, State: s.State, Leader: s.Leader, Term: s.Term, NextToken: s.NextToken, Why: s.Waiting}
		if r != last {
			last = r
			r.At = now()
			c.report(r)
		}
		select {
		case <-ticks.C:
		case <-ctx.Done():
			return
		}
	}
}

// obey carries out orders. Those about connections are answered also while the
// node is opening, since it cannot reach the others before.
func (c *child) obey(ctx context.Context, orders *bufio.Scanner, opened <-chan struct{}) error {
	for {
		o, err := nextOrder(orders)
		if err != nil {
			return err
		}
		if o.Do == orderWhose {
			if ownsSocket(o.Port, o.Peer) {
				c.report(report{Kind: reportMine, Port: o.Port, Peer: o.Peer})
			}
			continue
		}
		select {
		case <-opened:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		switch o.Do {
		case orderTransfer:
			select {
			case c.transfers <- o.Node:
			default: // one is under way
			}
		case orderLate:
			c.worker.writeLate(o.Token)
		case orderAnswer:
			c.worker.answered(o.Seq, o.Good)
		}
	}
}

// transfer hands leadership over as it is told, until ctx ends.
func (c *child) transfer(ctx context.Context) {
	for {
		select {
		case to := <-c.transfers:
			limited, cancel := context.WithTimeout(ctx, transferLimit)
			_, err := c.node.Transfer(limited, to)
			cancel()
			if err != nil {
				c.report(report{Kind: reportRefused, Why: err.Error()})
			}
		case <-ctx.Done():
			return
		}
	}
}

func (c *child) report(r report) {
	c.mu.Lock()
	defer c.mu.Unlock()
	// Whoever would read it is gone otherwise, and then so are the orders.
	_ = c.out.Encode(r)
}

func nextOrder(lines *bufio.Scanner) (order, error) {
	var o order
	if !lines.Scan() {
		if err := lines.Err(); err != nil {
			return o, err
		}
		return o, io.EOF
	}
	return o, json.Unmarshal(lines.Bytes(), &o)
}
