package client

import (
	"context"
	"errors"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	"connectrpc.com/connect"

	"github.com/raftlease/raftlease/internal/wire"
	"github.com/raftlease/raftlease/lease"
	"github.com/raftlease/raftlease/transport/rpc"
)

// sender is one attempt of a call.
type sender func(ctx context.Context, addr string) error

// effect is what is known of an attempt.
type effect int

const (
	answered effect = iota // carried out or refused
	notSent                // it never left this process
	notDone                // the member says that it did not do it
	perhaps                // nobody knows
)

// try makes one attempt. The error of an answer is one of package lease.
func (c *Client) try(ctx context.Context, v call, addr string, send sender) (effect, error) {
	if !v.waits {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.patient)
		defer cancel()
	}
	var connected atomic.Bool
	ctx = httptrace.WithClientTrace(earlier(ctx), &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { connected.Store(true) },
	})
	err := send(ctx, addr)
	return judge(err, connected.Load())
}

// judge says what err tells of an attempt. One without a connection was not
// sent, also when its ctx ended while it was connecting.
func judge(err error, connected bool) (effect, error) {
	if err == nil {
		return answered, nil
	}
	detail := rpc.Detail(err)
	if detail == nil {
		if rpc.NotSent(err) || !connected {
			return notSent, err
		}
		return perhaps, err
	}
	switch told := wire.Err(detail); {
	case errors.Is(told, lease.ErrUnavailable), errors.Is(told, lease.ErrClosed):
		return notDone, err
	case errors.Is(told, lease.ErrUnknownOutcome):
		return perhaps, err
	default:
		return answered, told
	}
}

// tooLarge reports whether err is a response above the limit, which no other
// member would make smaller.
func tooLarge(err error) bool {
	return rpc.Detail(err) == nil && connect.CodeOf(err) == connect.CodeResourceExhausted
}

// early is a context that announces an earlier deadline than it has. Members
// answer by the deadline that they are told. If that were the moment at which
// the client stops listening, every call that they could not carry out in time
// would have an unknown outcome (G6), and a waiter might be granted the name
// just then.
type early struct {
	context.Context
	at time.Time
}

const mostEarly = 100 * time.Millisecond

func earlier(ctx context.Context) context.Context {
	at, ok := ctx.Deadline()
	if !ok {
		return ctx
	}
	return early{ctx, at.Add(-min(time.Until(at)/8, mostEarly))}
}

// Deadline implements context.Context.
func (e early) Deadline() (time.Time, bool) { return e.at, true }
