package sqltest

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/raftlease/raftlease/sqlstore"
)

// The databases of the tests do not wait for a disk, so these show what the
// statements cost and not what a commit does.
func BenchmarkStore_Renew(b *testing.B) {
	onEachParallel(b, func(b *testing.B, s *sqlstore.Store, id int64) func() {
		g := acquire(b, s, fmt.Sprint("job ", id), "a", time.Hour)
		return func() {
			if _, err := s.Renew(bg, g, time.Hour); err != nil {
				b.Error(err)
			}
		}
	})
}

func BenchmarkStore_AcquireAndRelease(b *testing.B) {
	onEachParallel(b, func(b *testing.B, s *sqlstore.Store, id int64) func() {
		name := fmt.Sprint("job ", id)
		return func() { release(b, s, acquire(b, s, name, "a", time.Hour)) }
	})
}

func BenchmarkStore_Refused(b *testing.B) {
	onEachParallel(b, func(b *testing.B, s *sqlstore.Store, id int64) func() {
		name := fmt.Sprint("job ", id)
		acquire(b, s, name, "a", time.Hour)
		return func() {
			if _, err := s.Acquire(bg, name, "b", time.Hour); err == nil {
				b.Error("granted to another")
			}
		}
	})
}

// onEachParallel runs what prepare returns, once for each goroutine, again and
// again. id tells the goroutines apart.
func onEachParallel(b *testing.B, prepare func(b *testing.B, s *sqlstore.Store, id int64) func()) {
	for _, open := range []func(t testing.TB) database{onSQLite, onPostgres} {
		d := open(b)
		b.Run(d.dialect.String(), func(b *testing.B) {
			s := d.store(b)
			var ids atomic.Int64
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				do := prepare(b, s, ids.Add(1))
				for pb.Next() {
					do()
				}
			})
		})
	}
}
