package client

import (
	"context"
	"errors"
	"fmt"

	"github.com/raftlease/raftlease/internal/wire"
	"github.com/raftlease/raftlease/lease"
	pb "github.com/raftlease/raftlease/transport/rpc/raftleasev1"
)

// Watch implements lease.Watcher. When its member fails it goes on at another
// one, without loss or repetition; if that no longer has the changes in between,
// fn gets the present state, as after falling behind. The state is reported when
// it has arrived as a whole, so it is held in memory once. fn runs on the
// caller's goroutine and may call the client, but not Close.
func (c *Client) Watch(ctx context.Context, prefix string, after uint64, fn func(lease.Event) error) error {
	if err := lease.CheckPrefix(prefix); err != nil {
		return err
	}
	v := call{what: fmt.Sprintf("watch leases %q", prefix), reads: true, waits: true}
	ctx, end, err := c.begin(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", v.what, err)
	}
	defer end()

	w := &watch{client: c, prefix: prefix, fn: fn, place: newPlace(after)}
	for at := int(c.good.Load()); ; at++ {
		i := at % len(c.addrs)
		w.alive = func() { c.good.Store(int64(i)) }
		effect, err := c.try(ctx, v, c.addrs[i], w.stream)
		var own *ownError
		switch {
		case errors.As(err, &own):
			return own.err
		case ctx.Err() == nil && effect == answered:
			return refusal(v, err)
		}
		w.wait.pause(ctx)
		if ctx.Err() != nil {
			return v.ended(ctx, false, fmt.Errorf("member %q: %w", c.addrs[i], err))
		}
	}
}

// watch is a Watch under way.
type watch struct {
	client *Client
	prefix string
	fn     func(lease.Event) error
	place  place
	wait   backoff
	alive  func() // notes that the present member answers
}

// ownError carries the error of a watch's function past the retries.
type ownError struct{ err error }

func (e *ownError) Error() string { return e.err.Error() }

var errStreamEnded = errors.New("the member ended the stream")

// stream reports what one member sends. It never returns nil.
func (w *watch) stream(ctx context.Context, addr string) error {
	ctx, cancel := context.WithCancel(ctx)
	req := &pb.WatchRequest{Prefix: w.prefix, After: w.place.after}
	stream, err := w.client.rpc.Lease(addr).Watch(ctx, req)
	if err != nil {
		cancel()
		return err
	}
	defer stream.Close()
	defer cancel() // first, so that Close does not read the rest
	w.place.begin()
	for stream.Receive() {
		w.alive()
		w.wait.reset()
		event, ok := wire.Event(stream.Msg())
		if !ok {
			event.Index = stream.Msg().GetIndex()
		}
		for _, e := range w.place.next(event) {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err := w.fn(e); err != nil {
				return &ownError{err}
			}
		}
	}
	if err := stream.Err(); err != nil {
		return err
	}
	return errStreamEnded
}
