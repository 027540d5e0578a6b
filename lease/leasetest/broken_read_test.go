package leasetest

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/raftlease/raftlease/lease"
	"github.com/raftlease/raftlease/memstore"
)

// gets changes what a read returns.
func gets(change func(r lease.Record, err error) (lease.Record, error)) func(s *memstore.Store) hooks {
	return func(s *memstore.Store) hooks {
		return hooks{get: func(ctx context.Context, name string) (lease.Record, error) {
			return change(s.Get(ctx, name))
		}}
	}
}

func record(change func(r *lease.Record)) func(s *memstore.Store) hooks {
	return gets(func(r lease.Record, err error) (lease.Record, error) {
		change(&r)
		return r, err
	})
}

// lists changes what a list returns.
func lists(change func(s *memstore.Store, prefix string, rs []lease.Record) []lease.Record) func(s *memstore.Store) hooks {
	return func(s *memstore.Store) hooks {
		return hooks{list: func(ctx context.Context, prefix string) ([]lease.Record, error) {
			rs, err := s.List(ctx, prefix)
			return change(s, prefix, rs), err
		}}
	}
}

func every(s *memstore.Store) []lease.Record {
	rs, _ := s.List(bg, "")
	return rs
}

const (
	live1    = "get returns the live grant"
	byPrefix = "list returns a prefix in byte order"
)

var readMutants = []mutant{
	{"reads no ttl", live1, record(func(r *lease.Record) { r.TTL = 0 })},
	{"reads another token", live1, record(func(r *lease.Record) { r.Token++ })},
	{"reads no owner", live1, record(func(r *lease.Record) { r.Owner = "" })},
	{"reads less time than promised", live1, record(func(r *lease.Record) { r.Remaining /= 2 })},
	{"reads more time than the ttl", live1, record(func(r *lease.Record) { r.Remaining *= 2 })},
	{"reads what was", live1, func(s *memstore.Store) hooks {
		var first sync.Map
		return hooks{get: func(ctx context.Context, name string) (lease.Record, error) {
			r, err := s.Get(ctx, name)
			if was, ok := first.LoadOrStore(name, r); ok && err == nil {
				r = was.(lease.Record)
			}
			return r, err
		}}
	}},
	{"reads free names as empty records", "get of a free name is not found", gets(func(r lease.Record, err error) (lease.Record, error) {
		if errors.Is(err, lease.ErrNotFound) {
			err = nil
		}
		return r, err
	})},
	{"lists in another order", byPrefix, lists(func(_ *memstore.Store, _ string, rs []lease.Record) []lease.Record {
		slices.SortFunc(rs, func(a, b lease.Record) int {
			return strings.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name))
		})
		return rs
	})},
	{"lists everything", byPrefix, lists(func(s *memstore.Store, _ string, _ []lease.Record) []lease.Record { return every(s) })},
	{"lists the last one not", byPrefix, lists(func(_ *memstore.Store, _ string, rs []lease.Record) []lease.Record {
		return rs[:max(len(rs)-1, 0)]
	})},
	{"lists what is inside a name", byPrefix, lists(func(s *memstore.Store, prefix string, _ []lease.Record) []lease.Record {
		return slices.DeleteFunc(every(s), func(r lease.Record) bool {
			return len(r.Name) <= len(prefix) || !strings.HasPrefix(r.Name, prefix)
		})
	})},
	{"takes % for a wildcard", "list takes the prefix by the byte", lists(func(s *memstore.Store, prefix string, rs []lease.Record) []lease.Record {
		if before, ok := strings.CutSuffix(prefix, "%"); ok {
			rs, _ = s.List(bg, before)
		}
		return rs
	})},
	{"takes _ for any character", "list takes the prefix by the byte", lists(func(s *memstore.Store, prefix string, rs []lease.Record) []lease.Record {
		if before, ok := strings.CutSuffix(prefix, "_"); ok {
			rs, _ = s.List(bg, before)
		}
		return rs
	})},
	{"folds the case of prefixes", "list takes the prefix by the byte", lists(func(s *memstore.Store, prefix string, rs []lease.Record) []lease.Record {
		return slices.DeleteFunc(every(s), func(r lease.Record) bool {
			return !strings.HasPrefix(strings.ToLower(r.Name), strings.ToLower(prefix))
		})
	})},
}

func puts(change func(data []byte) []byte) func(s *memstore.Store) hooks {
	return func(s *memstore.Store) hooks {
		return hooks{put: func(ctx context.Context, g lease.Grant, data []byte) error { return s.Put(ctx, g, change(data)) }}
	}
}

const (
	roundTrip = "data is read as it was written"
	stale     = "G7 a stale token writes nothing"
	outlives  = "data outlives release and expiry and names its writer"
)

var dataMutants = []mutant{
	{"cuts data at a zero byte", roundTrip, puts(func(d []byte) []byte { d, _, _ = bytes.Cut(d, []byte{0}); return d })},
	{"trims data", roundTrip, puts(bytes.TrimSpace)},
	{"mends the encoding of data", roundTrip, puts(func(d []byte) []byte { return bytes.ToValidUTF8(d, []byte("?")) })},
	{"has room for less data", roundTrip, puts(func(d []byte) []byte { return d[:min(len(d), lease.MaxDataLen-1)] })},
	{"keeps the first data", roundTrip, func(s *memstore.Store) hooks {
		return hooks{put: func(ctx context.Context, g lease.Grant, data []byte) error {
			if r, err := s.Get(ctx, g.Name); err == nil && len(r.Data) > 0 {
				return nil
			}
			return s.Put(ctx, g, data)
		}}
	}},
	{"lets a stale token write", stale, func(s *memstore.Store) hooks {
		return hooks{put: func(ctx context.Context, g lease.Grant, data []byte) error {
			return s.Put(ctx, live(s, g, isLive), data)
		}}
	}},
	{"lets another owner write", stale, func(s *memstore.Store) hooks {
		return hooks{put: func(ctx context.Context, g lease.Grant, data []byte) error {
			return s.Put(ctx, live(s, g, func(r lease.Record) bool { return r.Token == g.Token }), data)
		}}
	}},
	{"refuses a stale token and says nothing", stale, func(s *memstore.Store) hooks {
		return hooks{put: func(ctx context.Context, g lease.Grant, data []byte) error {
			if err := s.Put(ctx, g, data); !errors.Is(err, lease.ErrLost) {
				return err
			}
			return nil
		}}
	}},
	{"keeps a value that was emptied", "empty data removes the value", func(s *memstore.Store) hooks {
		return hooks{put: func(ctx context.Context, g lease.Grant, data []byte) error {
			if len(data) == 0 {
				return nil
			}
			return s.Put(ctx, g, data)
		}}
	}},
	{"keeps the writer of a value that was emptied", "empty data removes the value", record(func(r *lease.Record) { r.DataToken = max(r.DataToken, 1) })},
	{"drops data at release", outlives, func(s *memstore.Store) hooks {
		return hooks{release: func(ctx context.Context, g lease.Grant) error {
			s.Put(ctx, g, nil)
			return s.Release(ctx, g)
		}}
	}},
	{"drops data at the next grant", outlives, func(s *memstore.Store) hooks {
		return hooks{acquire: func(ctx context.Context, name, owner string, ttl time.Duration) (lease.Grant, error) {
			g, err := s.Acquire(ctx, name, owner, ttl)
			if err == nil {
				s.Put(ctx, g, nil)
			}
			return g, err
		}}
	}},
	{"names the holder as the writer", outlives, record(func(r *lease.Record) {
		if r.Held() && r.DataToken != 0 {
			r.DataToken = r.Token
		}
	})},
	{"shows an owner of a free name", outlives, record(func(r *lease.Record) {
		if !r.Held() && r.DataToken != 0 {
			r.Owner, r.Token = "z", r.DataToken
		}
	})},
	{"keeps one value for names alike", "data belongs to its name alone", func(s *memstore.Store) hooks {
		var mu sync.Mutex
		shared := map[string][]byte{}
		return hooks{
			put: func(ctx context.Context, g lease.Grant, data []byte) error {
				mu.Lock()
				defer mu.Unlock()
				shared[strings.ToLower(g.Name)] = data
				return s.Put(ctx, g, data)
			},
			get: func(ctx context.Context, name string) (lease.Record, error) {
				mu.Lock()
				defer mu.Unlock()
				r, err := s.Get(ctx, name)
				r.Data = shared[strings.ToLower(name)]
				return r, err
			},
		}
	}},
	{"keeps the caller's slice", "data is copied in and out", func(s *memstore.Store) hooks {
		var kept []byte
		return hooks{
			put: func(ctx context.Context, g lease.Grant, data []byte) error { kept = data; return s.Put(ctx, g, data) },
			get: func(ctx context.Context, name string) (lease.Record, error) {
				r, err := s.Get(ctx, name)
				r.Data = bytes.Clone(kept)
				return r, err
			},
		}
	}},
	{"hands out its own slice", "data is copied in and out", func(s *memstore.Store) hooks {
		var kept []byte
		return hooks{get: func(ctx context.Context, name string) (lease.Record, error) {
			r, err := s.Get(ctx, name)
			if kept == nil {
				kept = r.Data
			}
			r.Data = kept
			return r, err
		}}
	}},
}

func isLive(lease.Record) bool { return true }
