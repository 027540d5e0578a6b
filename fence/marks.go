package fence

import (
	"context"
	"sync"
)

// Marks remembers the highest token seen for each lease. An implementation on
// the resource itself, such as a column of its database, is the best there is:
// mark and data then cannot go apart.
type Marks interface {
	// Raise makes token the mark of name if it is larger than the mark, and
	// returns the mark after that, in one step. When it returns without an error
	// the mark is stored as durably as the resource is. A repetition changes
	// nothing. Safe for concurrent use.
	Raise(ctx context.Context, name string, token uint64) (mark uint64, err error)
}

// Memory is Marks that are forgotten with the process: enough for a resource
// that is. It keeps one number for every name seen. Safe for concurrent use.
type Memory struct {
	mu    sync.Mutex
	marks map[string]uint64
}

// NewMemory returns marks without any.
func NewMemory() *Memory { return &Memory{marks: map[string]uint64{}} }

// Raise implements Marks. It never fails.
func (m *Memory) Raise(_ context.Context, name string, token uint64) (uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.marks[name] = max(m.marks[name], token)
	return m.marks[name], nil
}
