package client

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/raftlease/raftlease/lease"
)

const defaultAttemptTimeout = 5 * time.Second

// Bounds for Config.Limits.
const (
	minLimit = time.Millisecond
	maxLimit = 365 * 24 * time.Hour
)

// Config says which cluster a Client asks, and how.
type Config struct {
	// Addrs are members of one cluster, as "host:port". At least one; the more,
	// the more members may be down. The order means nothing.
	Addrs []string

	// Limits bound the ttl before a request is sent; the cluster has its own.
	// The zero value means 1 s to 24 h.
	Limits lease.Limits

	// AttemptTimeout is how long one member may take to answer before another
	// is asked; half of it is allowed for connecting. AcquireWait and Watch are
	// not bound by it: there a dead member is noticed by pings. Defaults to 5 s.
	AttemptTimeout time.Duration

	// Dial connects to one of Addrs. It has to give up when its ctx ends.
	// Defaults to TCP.
	Dial func(ctx context.Context, addr string) (net.Conn, error)
}

// Validate reports everything that is wrong with c at once, as a
// *lease.InvalidError with the names of the fields.
func (c Config) Validate() error {
	var f lease.Faults
	if len(c.Addrs) == 0 {
		f.Add("Addrs", "", "at least one host:port of a member")
	}
	for i, addr := range c.Addrs {
		checkAddr(&f, fmt.Sprintf("Addrs[%d]", i), addr)
	}
	l := c.Limits.WithDefaults()
	if l.MinTTL < minLimit || l.MinTTL > l.MaxTTL || l.MaxTTL > maxLimit {
		f.Add("Limits", fmt.Sprintf("%v to %v", l.MinTTL, l.MaxTTL),
			fmt.Sprintf("within %v to %v, the smaller first", minLimit, maxLimit))
	}
	if c.AttemptTimeout < 0 {
		f.Add("AttemptTimeout", c.AttemptTimeout, "more than 0, or 0 for the default")
	}
	return f.Err()
}

func (c Config) withDefaults() Config {
	c.Limits = c.Limits.WithDefaults()
	if c.AttemptTimeout == 0 {
		c.AttemptTimeout = defaultAttemptTimeout
	}
	if c.Dial == nil {
		var d net.Dialer
		c.Dial = func(ctx context.Context, addr string) (net.Conn, error) { return d.DialContext(ctx, "tcp", addr) }
	}
	return c
}

// checkAddr checks that addr is something to connect to. Names of ports are not
// taken, because what they mean differs between machines.
func checkAddr(f *lease.Faults, field, addr string) {
	host, port, err := net.SplitHostPort(addr)
	n, numErr := strconv.ParseUint(port, 10, 16)
	if err != nil || numErr != nil || host == "" || n == 0 || !isHost(host) {
		f.Add(field, addr, "host:port with a port of 1 to 65535")
	}
}

// isHost reports whether host is free of what would mean something else in a
// URL.
func isHost(host string) bool {
	if ip := net.ParseIP(host); ip != nil {
		return true
	}
	for _, r := range host {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '.', r == '-', r == '_':
		default:
			return false
		}
	}
	return true
}
