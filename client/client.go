package client

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/raftlease/raftlease/lease"
	"github.com/raftlease/raftlease/transport/rpc"
)

// Client asks a cluster. Safe for concurrent use. Close it when it is no longer
// needed.
type Client struct {
	addrs   []string
	limits  lease.Limits
	patient time.Duration // Config.AttemptTimeout
	rpc     *rpc.Clients
	conns   conns
	claims  claims

	// good is the index in addrs of the member that answered last.
	good atomic.Int64

	ctx    context.Context // ends with Close
	cancel context.CancelFunc

	mu     sync.Mutex
	closed bool
	calls  sync.WaitGroup // calls under way; Add only under mu, or within a call
}

// Dial is Open with nothing but addresses.
func Dial(addrs ...string) (*Client, error) { return Open(Config{Addrs: addrs}) }

// Open returns a client of the cluster that cfg names, or a *lease.InvalidError.
// It connects to nobody: that is left to the first call.
func Open(cfg Config) (*Client, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	ctx, cancel := context.WithCancel(context.Background())
	c := &Client{
		addrs:   append([]string(nil), cfg.Addrs...),
		limits:  cfg.Limits,
		patient: cfg.AttemptTimeout,
		conns:   conns{open: map[*conn]struct{}{}},
		claims:  newClaims(),
		ctx:     ctx,
		cancel:  cancel,
	}
	c.rpc = rpc.NewClients(c.dialer(cfg.Dial))
	return c, nil
}

// Close ends the client: calls under way and later ones return lease.ErrClosed,
// those under way also lease.ErrUnknownOutcome when they may have been carried
// out. It waits for them, which takes up to 2 s when an AcquireWait may have left
// a grant behind. Grants keep their deadlines. It is idempotent and always
// returns nil. It must not be called from within the function of a Watch.
func (c *Client) Close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.cancel()
	c.calls.Wait()
	c.rpc.Close()
	c.conns.close()
	return nil
}

// Guarantee returns lease.Exclusive.
func (c *Client) Guarantee() lease.Guarantee { return lease.Exclusive }

// begin starts a call. Its context ends with ctx, or with the client and
// lease.ErrClosed as the cause; end has to be called when the call is over.
func (c *Client) begin(ctx context.Context) (_ context.Context, end func(), err error) {
	if ctx.Err() != nil {
		err = fmt.Errorf("%w: %w", lease.ErrUnavailable, context.Cause(ctx))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, nil, lease.ErrClosed
	}
	if err != nil {
		return nil, nil, err
	}
	c.calls.Add(1)
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(c.ctx, func() { cancel(lease.ErrClosed) })
	return ctx, func() {
		stop()
		cancel(nil)
		c.calls.Done()
	}, nil
}

var (
	_ lease.Store     = (*Client)(nil)
	_ lease.Waiter    = (*Client)(nil)
	_ lease.Inspector = (*Client)(nil)
	_ lease.DataStore = (*Client)(nil)
	_ lease.Watcher   = (*Client)(nil)
)
