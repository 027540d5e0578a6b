package leasetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/raftlease/raftlease/lease"
	"github.com/raftlease/raftlease/memstore"
)

type watchFunc = func(ctx context.Context, prefix string, after uint64, fn func(lease.Event) error) error

func watches(watch func(s *memstore.Store) watchFunc) func(s *memstore.Store) hooks {
	return func(s *memstore.Store) hooks { return hooks{watch: watch(s)} }
}

// events replaces every event of a watch by others.
func events(change func(after uint64, v lease.Event) []lease.Event) func(s *memstore.Store) hooks {
	return watches(func(s *memstore.Store) watchFunc {
		return func(ctx context.Context, prefix string, after uint64, fn func(lease.Event) error) error {
			return s.Watch(ctx, prefix, after, func(v lease.Event) error {
				for _, v := range change(after, v) {
					if err := fn(v); err != nil {
						return err
					}
				}
				return nil
			})
		}
	})
}

func without(kind lease.EventKind) func(s *memstore.Store) hooks {
	return events(func(_ uint64, v lease.Event) []lease.Event {
		if v.Kind == kind {
			return nil
		}
		return []lease.Event{v}
	})
}

func changed(change func(v *lease.Event)) func(s *memstore.Store) hooks {
	return events(func(_ uint64, v lease.Event) []lease.Event {
		change(&v)
		return []lease.Event{v}
	})
}

// announces reports an expiry when it is due, though the lease may be renewed.
func announces(s *memstore.Store) watchFunc {
	return func(ctx context.Context, prefix string, after uint64, fn func(lease.Event) error) error {
		var mu sync.Mutex
		return s.Watch(ctx, prefix, after, func(v lease.Event) error {
			mu.Lock()
			defer mu.Unlock()
			if v.Kind == lease.EventGranted {
				expired := v
				expired.Kind = lease.EventExpired
				time.AfterFunc(v.Record.TTL/2, func() {
					mu.Lock()
					defer mu.Unlock()
					fn(expired)
				})
			}
			if v.Kind == lease.EventExpired {
				return nil
			}
			return fn(v)
		})
	}
}

// locks calls a watcher's function with the store locked.
func locks(s *memstore.Store) hooks {
	var mu sync.RWMutex
	return hooks{
		acquire: func(ctx context.Context, name, owner string, ttl time.Duration) (lease.Grant, error) {
			for !mu.TryLock() {
				select {
				case <-ctx.Done():
					return lease.Grant{}, errors.Join(lease.ErrUnavailable, context.Cause(ctx))
				case <-time.After(time.Millisecond):
				}
			}
			defer mu.Unlock()
			return s.Acquire(ctx, name, owner, ttl)
		},
		watch: func(ctx context.Context, prefix string, after uint64, fn func(lease.Event) error) error {
			return s.Watch(ctx, prefix, after, func(v lease.Event) error {
				mu.RLock()
				defer mu.RUnlock()
				return fn(v)
			})
		},
	}
}

const (
	inStory = "a watch opens with the state and then reports changes in order"
	resumes = "a watch resumes by index without loss or repetition"
	ends    = "a watch ends with its context or with the error of its function"
)

var watchMutants = []mutant{
	{"does not say that the state is complete", inStory, without(lease.EventSynced)},
	{"does not report the state", inStory, without(lease.EventState)},
	{"does not report grants", inStory, without(lease.EventGranted)},
	{"does not report releases", inStory, without(lease.EventReleased)},
	{"does not report expiries", inStory, without(lease.EventExpired)},
	{"does not report data", inStory, without(lease.EventData)},
	{"takes an expiry for a release", inStory, changed(func(v *lease.Event) {
		if v.Kind == lease.EventExpired {
			v.Kind = lease.EventReleased
		}
	})},
	{"reports an ending without the grant", inStory, changed(func(v *lease.Event) {
		if v.Kind == lease.EventReleased {
			v.Record.Owner, v.Record.Token = "", 0
		}
	})},
	{"reports a grant without its ttl", inStory, changed(func(v *lease.Event) { v.Record.TTL = 0 })},
	{"has one index for all", inStory, changed(func(v *lease.Event) { v.Index = 1 })},
	{"counts down", inStory, changed(func(v *lease.Event) { v.Index = 1000 - v.Index })},
	{"announces an expiry that is not done", "an ending is reported once it cannot be undone", watches(announces)},
	{"repeats the last event at a resume", resumes, watches(func(s *memstore.Store) watchFunc {
		return func(ctx context.Context, prefix string, after uint64, fn func(lease.Event) error) error {
			return s.Watch(ctx, prefix, max(after, 1)-1, fn)
		}
	})},
	{"loses an event at a resume", resumes, events(func(after uint64, v lease.Event) []lease.Event {
		if after != 0 && v.Index == after+1 {
			return nil
		}
		return []lease.Event{v}
	})},
	{"resumes with what comes", resumes, watches(func(s *memstore.Store) watchFunc {
		return func(ctx context.Context, prefix string, after uint64, fn func(lease.Event) error) error {
			opened := after == 0
			return s.Watch(ctx, prefix, 0, func(v lease.Event) error {
				if opened {
					return fn(v)
				}
				opened = v.Kind == lease.EventSynced
				return nil
			})
		}
	})},
	{"has no prefix", "a watch reports its prefix alone", watches(func(s *memstore.Store) watchFunc {
		return func(ctx context.Context, prefix string, after uint64, fn func(lease.Event) error) error {
			return s.Watch(ctx, "", after, fn)
		}
	})},
	{"folds the case of the prefix", "a watch reports its prefix alone", watches(func(s *memstore.Store) watchFunc {
		return func(ctx context.Context, prefix string, after uint64, fn func(lease.Event) error) error {
			return s.Watch(ctx, "", after, func(v lease.Event) error {
				if v.Kind != lease.EventSynced && !strings.HasPrefix(strings.ToLower(v.Record.Name), strings.ToLower(prefix)) {
					return nil
				}
				return fn(v)
			})
		}
	})},
	{"wraps the error of the function", ends, watches(func(s *memstore.Store) watchFunc {
		return func(ctx context.Context, prefix string, after uint64, fn func(lease.Event) error) error {
			return fmt.Errorf("watch: %w", s.Watch(ctx, prefix, after, fn))
		}
	})},
	{"ends a watch without an error", ends, watches(func(s *memstore.Store) watchFunc {
		return func(ctx context.Context, prefix string, after uint64, fn func(lease.Event) error) error {
			if err := s.Watch(ctx, prefix, after, fn); ctx.Err() == nil {
				return err
			}
			return nil
		}
	})},
	{"goes on after an error of the function", ends, watches(func(s *memstore.Store) watchFunc {
		return func(ctx context.Context, prefix string, after uint64, fn func(lease.Event) error) error {
			var first error
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			err := s.Watch(ctx, prefix, after, func(v lease.Event) error {
				first = errors.Join(first, fn(v))
				return nil
			})
			return errors.Join(first, err)
		}
	})},
	{"waits for its watchers", "G6 a watcher that does not come back stops nobody", locks},
}
