package lease

import "fmt"

// Drainer is a Store that lets running jobs stop before it closes.
type Drainer interface {
	// Hold counts the caller as a running job until it calls release. drain is
	// closed when the store is about to close: the job then has to stop, release
	// its lease and call release, which the store waits for within bounds. On a
	// store that is closing or closed drain is closed already.
	Hold() (drain <-chan struct{}, release func())
}

// register makes the caller a running job of s, if s wants to know.
func register(s Store) (drain <-chan struct{}, release func()) {
	if d, ok := s.(Drainer); ok {
		return d.Hold()
	}
	return nil, func() {}
}

// closing is the cause of a job's context that ends because the store closes. It
// is ErrClosed. The lease is not lost.
func closing(name string) error {
	return fmt.Errorf("hold lease %q: the store is about to close: %w", name, ErrClosed)
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
