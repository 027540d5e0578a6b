package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/raftlease/raftlease/lease"
)

// call says how a call is tried.
type call struct {
	what  string // what is being done to what, for errors
	reads bool   // it changes nothing, so no attempt can have had an effect
	waits bool   // a member may take any time to answer
	once  bool   // it is not repeated when it may have been carried out
	only  string // ask this address and only once; "" for any
}

// do tries a call at one member after the other until one gives an answer or
// ctx ends. The error is a refusal, or says which of not done and perhaps done
// it is, with what went wrong last.
func (c *Client) do(ctx context.Context, v call, send sender) error {
	var (
		unknown bool
		at      = int(c.good.Load())
		inRow   int // attempts since the last pause
		wait    backoff
	)
	for {
		addr := c.addrs[at%len(c.addrs)]
		if v.only != "" {
			addr = v.only
		}
		effect, err := c.try(ctx, v, addr, send)
		switch effect {
		case answered:
			if v.only == "" {
				c.good.Store(int64(at % len(c.addrs)))
			}
			return refusal(v, err)
		case perhaps:
			unknown = unknown || !v.reads
		}
		err = fmt.Errorf("member %q: %w", addr, err)
		if v.once && unknown || v.only != "" || v.reads && tooLarge(err) {
			return v.ended(ctx, unknown, err)
		}
		at++
		inRow++
		if effect != notSent || inRow >= len(c.addrs) {
			inRow = 0
			wait.pause(ctx)
		}
		if spent(ctx) {
			return v.ended(ctx, unknown, err)
		}
	}
}

// refusal is the error of an answer. Those that carry data stand for
// themselves.
func refusal(v call, err error) error {
	var (
		held    *lease.HeldError
		lost    *lease.LostError
		invalid *lease.InvalidError
	)
	if err == nil || errors.As(err, &held) || errors.As(err, &lost) || errors.As(err, &invalid) {
		return err
	}
	return fmt.Errorf("%s: %w", v.what, err)
}

// ended is the error of a call without an answer. last, which may be nil, is
// told but not wrapped: the contexts of attempts are nobody else's business.
func (v call) ended(ctx context.Context, unknown bool, last error) error {
	kind := lease.ErrUnavailable
	if unknown {
		kind = lease.ErrUnknownOutcome
	}
	cause := context.Cause(ctx)
	switch {
	case cause == nil:
		return fmt.Errorf("%s: %w: %v", v.what, kind, last)
	case errors.Is(cause, lease.ErrClosed) && !unknown:
		return fmt.Errorf("%s: %w (last attempt: %v)", v.what, cause, last)
	}
	return fmt.Errorf("%s: %w: %w (last attempt: %v)", v.what, kind, cause, last)
}

// Pauses between attempts.
const (
	firstPause = 10 * time.Millisecond
	lastPause  = 250 * time.Millisecond
	// leastTime is what has to be left of a ctx for one more attempt. One that
	// ctx cuts off has an unknown outcome, so a hopeless one does harm.
	leastTime = 10 * time.Millisecond
)

// spent reports whether ctx has ended, and waits for that if it is about to.
func spent(ctx context.Context) bool {
	if at, ok := ctx.Deadline(); ok && time.Until(at) < leastTime {
		<-ctx.Done()
	}
	return ctx.Err() != nil
}
