package raftstore

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// ErrDisk is what a write returns once the disk has hung or failed.
var ErrDisk = errors.New("disk failed")

// Guard is a raft.LogStore whose writes have a deadline. raft keeps leading
// while its disk hangs (upstream issues 503, 614, 666); a write that returns an
// error makes it step down. After the first write that fails or is late no
// later one is tried: what the disk then holds is unknown, so the node has to
// stop, which Guard asks for by calling failed once.
type Guard struct {
	raft.LogStore
	limit  time.Duration
	failed func(error)

	mu  sync.Mutex
	err error
}

// NewGuard wraps store. limit bounds one write; failed is called at most once,
// on its own goroutine. It may be nil.
func NewGuard(store raft.LogStore, limit time.Duration, failed func(error)) *Guard {
	return &Guard{LogStore: store, limit: limit, failed: failed}
}

// StoreLog implements raft.LogStore.
func (g *Guard) StoreLog(log *raft.Log) error { return g.StoreLogs([]*raft.Log{log}) }

// StoreLogs implements raft.LogStore.
func (g *Guard) StoreLogs(logs []*raft.Log) error {
	return g.write("append", func() error { return g.LogStore.StoreLogs(logs) })
}

// DeleteRange implements raft.LogStore.
func (g *Guard) DeleteRange(first, last uint64) error {
	return g.write("truncate", func() error { return g.LogStore.DeleteRange(first, last) })
}

// write runs f on its own goroutine, because a hung system call cannot be
// interrupted: the goroutine then stays until the disk answers or the process
// ends.
func (g *Guard) write(what string, f func() error) error {
	if err := g.broken(); err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- f() }()
	late := time.NewTimer(g.limit)
	defer late.Stop()
	select {
	case err := <-done:
		if err != nil {
			return g.fail(fmt.Errorf("%w: %s log: %w", ErrDisk, what, err))
		}
		return nil
	case <-late.C:
		return g.fail(fmt.Errorf("%w: %s log: no answer within %v", ErrDisk, what, g.limit))
	}
}

func (g *Guard) broken() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.err
}

func (g *Guard) fail(err error) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.err == nil {
		g.err = err
		if g.failed != nil {
			go g.failed(err)
		}
	}
	return g.err
}
