package transport

import (
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
)

// Config says where a Mux listens and how patient it is.
type Config struct {
	// Network defaults to TCP.
	Network Network
	// Addr is "host:port"; port 0 takes any free one.
	Addr string
	// Insecure allows an address of TCP that is not loopback. There is no
	// encryption: set it only where everybody who reaches the port is trusted.
	Insecure bool
	// Logger defaults to none.
	Logger hclog.Logger

	// HelloTimeout is how long a new connection may take to say what it is: its
	// first byte, and on a raft connection the whole handshake. Defaults to 5 s.
	HelloTimeout time.Duration
	// MaxUnknown limits the connections that have not said what they are. One
	// more closes the oldest of them. Defaults to 256.
	MaxUnknown int
}

func (c Config) withDefaults() Config {
	if c.Network == nil {
		c.Network = TCP()
	}
	if c.Logger == nil {
		c.Logger = hclog.NewNullLogger()
	}
	if c.HelloTimeout == 0 {
		c.HelloTimeout = 5 * time.Second
	}
	if c.MaxUnknown == 0 {
		c.MaxUnknown = 256
	}
	return c
}

// Validate reports all faults of c at once. Zero values are no faults.
func (c Config) Validate() error {
	var errs []error
	if host, _, err := net.SplitHostPort(c.Addr); err != nil {
		errs = append(errs, fmt.Errorf("transport Addr is %q, want host:port: %w", c.Addr, err))
	} else if !c.Insecure && c.real() && !loopback(host) {
		errs = append(errs, insecureError(c.Addr))
	}
	if c.HelloTimeout < 0 {
		errs = append(errs, fmt.Errorf("transport HelloTimeout is %v, want more than 0, or 0 for the default", c.HelloTimeout))
	}
	if c.MaxUnknown < 0 {
		errs = append(errs, fmt.Errorf("transport MaxUnknown is %d, want 1 or more, or 0 for the default", c.MaxUnknown))
	}
	return errors.Join(errs...)
}

// real reports whether c's network is one that other machines may reach.
func (c Config) real() bool { return c.Network == nil || c.Network == TCP() }

// loopback reports whether host can be reached from this machine only. A name
// other than localhost is taken as public: what it resolves to may change.
func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

func insecureError(addr string) error {
	return fmt.Errorf("transport Addr is %q, which other machines can reach without encryption: "+
		"listen on a loopback address such as 127.0.0.1, or set Insecure if the network is trusted", addr)
}

// bind opens c's listener.
func bind(c Config) (net.Listener, error) {
	ln, err := c.Network.Listen(c.Addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("listen on %q: %w: stop the process that has it, or choose another Addr", c.Addr, err)
	}
	if err != nil {
		return nil, fmt.Errorf("listen on %q: %w", c.Addr, err)
	}
	// localhost is whatever the machine's resolver says it is.
	if a, ok := ln.Addr().(*net.TCPAddr); ok && !c.Insecure && !a.IP.IsLoopback() {
		ln.Close()
		return nil, insecureError(a.String())
	}
	return ln, nil
}
