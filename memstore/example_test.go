package memstore_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/raftlease/raftlease/lease"
	"github.com/raftlease/raftlease/memstore"
)

// Two parts of one process agree on who does a job.
func ExampleNew() {
	store := memstore.New()
	defer store.Close()
	ctx := context.Background()

	first, err := store.Acquire(ctx, "nightly report", "worker 1", time.Minute)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = store.Acquire(ctx, "nightly report", "worker 2", time.Minute)
	var held *lease.HeldError
	if errors.As(err, &held) {
		fmt.Printf("%s has it with token %d\n", held.Owner, held.Token)
	}

	if err := store.Release(ctx, first); err != nil {
		fmt.Println(err)
		return
	}
	second, err := store.Acquire(ctx, "nightly report", "worker 2", time.Minute)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s has it with token %d\n", second.Owner, second.Token)
	// Output:
	// worker 1 has it with token 1
	// worker 2 has it with token 2
}

// Tests of a service want short leases.
func ExampleOpen() {
	store, err := memstore.Open(memstore.Config{Limits: lease.Limits{MinTTL: 10 * time.Millisecond}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()

	g, err := store.Acquire(context.Background(), "job", "me", 20*time.Millisecond)
	fmt.Println(g.Name, g.TTL, err)

	_, err = memstore.Open(memstore.Config{Limits: lease.Limits{MinTTL: time.Minute, MaxTTL: time.Second}})
	fmt.Println(err)
	// Output:
	// job 20ms <nil>
	// invalid argument: Limits is "1m0s to 1s", want within 1ms to 8760h0m0s, the smaller first
}

// The next holder goes on where the last one stopped; a stale one can no longer
// write.
func ExampleStore_Put() {
	store := memstore.New()
	defer store.Close()
	ctx := context.Background()

	old, _ := store.Acquire(ctx, "import", "worker 1", time.Minute)
	fmt.Println(store.Put(ctx, old, []byte("row 4711")))
	store.Break(ctx, "import") // an operator takes the job away

	next, _ := store.Acquire(ctx, "import", "worker 2", time.Minute)
	r, err := store.Get(ctx, "import")
	fmt.Printf("%s, written with token %d, %v\n", r.Data, r.DataToken, err)
	fmt.Println(store.Put(ctx, next, []byte("row 4712")))
	fmt.Println(store.Put(ctx, old, []byte("row 4711 again")))
	// Output:
	// <nil>
	// row 4711, written with token 1, <nil>
	// <nil>
	// lease "import" of owner "worker 1" with token 1 is lost: taken, now held by "worker 2" with token 2
}

// A watch reports the state first and then what changes.
func ExampleStore_Watch() {
	store := memstore.New()
	defer store.Close()
	ctx := context.Background()

	g, _ := store.Acquire(ctx, "jobs/report", "worker 1", time.Minute)
	done := errors.New("seen enough")
	err := store.Watch(ctx, "jobs/", 0, func(e lease.Event) error {
		fmt.Printf("%d %s %q\n", e.Index, e.Kind, e.Record.Name)
		switch e.Kind {
		case lease.EventSynced:
			return store.Release(ctx, g)
		case lease.EventReleased:
			return done
		}
		return nil
	})
	fmt.Println(err)
	// Output:
	// 1 state "jobs/report"
	// 1 synced ""
	// 2 released "jobs/report"
	// seen enough
}
