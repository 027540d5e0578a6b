package raftstore

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
)

func entry(index uint64) *raft.Log { return &raft.Log{Index: index, Term: 1, Data: []byte("x")} }

// guarded returns a Guard with a limit of one second and the errors it told.
func guarded(inner raft.LogStore) (*Guard, *[]error) {
	var told []error
	return NewGuard(inner, time.Second, func(err error) { told = append(told, err) }), &told
}

func TestGuard_WritesAndReadsPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, told := guarded(inMemory())
		if err := errors.Join(g.StoreLog(entry(1)), g.StoreLogs([]*raft.Log{entry(2), entry(3)}), g.DeleteRange(1, 1)); err != nil {
			t.Fatal(err)
		}
		first, _ := g.FirstIndex()
		last, _ := g.LastIndex()
		synctest.Wait()
		if first != 2 || last != 3 || len(*told) != 0 {
			t.Errorf("log: got %d to %d and told %v, want 2 to 3 and nothing", first, last, *told)
		}
	})
}

// Case 28: a write that hangs is given up after the limit; later ones are not
// even tried, and the node is told once.
func TestGuard_HungWriteIsGivenUp(t *testing.T) {
	for name, write := range map[string]func(*Guard) error{
		"append":   func(g *Guard) error { return g.StoreLog(entry(1)) },
		"truncate": func(g *Guard) error { return g.DeleteRange(1, 1) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				inner := inMemory()
				gate := make(chan struct{})
				inner.hang = gate
				g, told := guarded(inner)
				begin := time.Now()
				if err := write(g); !errors.Is(err, ErrDisk) || time.Since(begin) != time.Second {
					t.Errorf("got %v after %v, want %v after 1s", err, time.Since(begin), ErrDisk)
				}
				close(gate) // it works again, and is not trusted
				for range 3 {
					if err := errors.Join(g.StoreLog(entry(2)), g.DeleteRange(1, 1)); !errors.Is(err, ErrDisk) {
						t.Errorf("later write: got %v, want %v", err, ErrDisk)
					}
				}
				synctest.Wait()
				if len(*told) != 1 || !errors.Is((*told)[0], ErrDisk) || inner.count() != 1 {
					t.Errorf("told %v and tried %d writes, want one of each", *told, inner.count())
				}
			})
		})
	}
}

func TestGuard_FailedWriteIsTheLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := inMemory()
		inner.failLogs = errDisk
		g, told := guarded(inner)
		if err := g.StoreLog(entry(1)); !errors.Is(err, ErrDisk) || !errors.Is(err, errDisk) {
			t.Errorf("got %v, want %v with %v", err, ErrDisk, errDisk)
		}
		inner.failLogs = nil
		if err := g.StoreLog(entry(1)); !errors.Is(err, ErrDisk) {
			t.Errorf("later write: got %v, want %v", err, ErrDisk)
		}
		synctest.Wait()
		if len(*told) != 1 || inner.count() != 1 {
			t.Errorf("told %v and tried %d writes, want one of each", *told, inner.count())
		}
	})
}

// Writes that hang side by side are told once.
func TestGuard_ConcurrentFailuresAreToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := inMemory()
		gate := make(chan struct{})
		inner.hang = gate
		g, told := guarded(inner)
		for range 8 {
			go func() { _ = g.StoreLog(entry(1)) }()
		}
		time.Sleep(2 * time.Second)
		close(gate)
		synctest.Wait()
		if len(*told) != 1 {
			t.Errorf("told %d times, want once", len(*told))
		}
		silent := NewGuard(&faulty{LogStore: raft.NewInmemStore(), failLogs: errDisk}, time.Second, nil)
		if err := silent.StoreLog(entry(1)); !errors.Is(err, ErrDisk) {
			t.Errorf("without anybody to tell: got %v, want %v", err, ErrDisk)
		}
	})
}
