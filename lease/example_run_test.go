package lease_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/raftlease/raftlease/lease"
	"github.com/raftlease/raftlease/memstore"
)

// One job under a lease. The store may be any: a raftlease.Node, a client, a
// table, or this one in memory.
func ExampleRun() {
	store := memstore.New()
	defer store.Close()

	job := lease.Job{Name: "nightly report", TTL: 30 * time.Second, Require: lease.Exclusive}
	err := lease.Run(context.Background(), store, job, func(ctx context.Context, g lease.Grant) error {
		for page := 1; page <= 3; page++ {
			// Right before every act that must not happen twice.
			if err := g.Check(); err != nil {
				return err
			}
			fmt.Printf("page %d of %q, token %d\n", page, g.Name, g.Token)
		}
		return nil
	})
	fmt.Println(err)
	// Output:
	// page 1 of "nightly report", token 1
	// page 2 of "nightly report", token 1
	// page 3 of "nightly report", token 1
	// <nil>
}

// The context of a job tells why it ended, and who has the lease now.
func ExampleRun_lost() {
	store := memstore.New()
	defer store.Close()

	job := lease.Job{Name: "migration", Owner: "replica 1", TTL: time.Second}
	err := lease.Run(context.Background(), store, job, func(ctx context.Context, g lease.Grant) error {
		store.Break(ctx, "migration") // an operator takes it away
		store.Acquire(ctx, "migration", "replica 2", time.Minute)

		<-ctx.Done() // at the next renewal
		var lost *lease.LostError
		if errors.As(context.Cause(ctx), &lost) {
			fmt.Printf("%s: %s has it with token %d\n", lost.Reason, lost.NewOwner, lost.NewToken)
		}
		return ctx.Err()
	})
	fmt.Println(errors.Is(err, lease.ErrLost))
	// Output:
	// taken: replica 2 has it with token 2
	// true
}

// A service that works while it leads, and stops gracefully: the lease is
// released when the work has stopped, and another replica has it at once.
func ExampleRunLoop() {
	store := memstore.New()
	defer store.Close()

	service := func(ctx context.Context, name string, leads chan<- string) error {
		job := lease.Job{Name: "queue poller", Owner: name}
		return lease.RunLoop(ctx, store, job, func(ctx context.Context, g lease.Grant) error {
			leads <- name
			ticker := time.NewTicker(time.Millisecond)
			defer ticker.Stop()
			for {
				select {
				case <-ticker.C: // poll
				case <-ctx.Done():
					fmt.Println(name, "puts its work aside")
					return nil
				}
			}
		})
	}

	var replicas sync.WaitGroup
	leads := make(chan string)
	stop := map[string]context.CancelFunc{}
	for _, name := range []string{"replica 1", "replica 2"} {
		ctx, cancel := context.WithCancel(context.Background())
		stop[name] = cancel
		replicas.Go(func() {
			if err := service(ctx, name, leads); err != nil {
				fmt.Println(err)
			}
		})
		if name == "replica 1" {
			fmt.Println(<-leads, "leads")
		}
	}
	stop["replica 1"]() // SIGTERM, say
	fmt.Println(<-leads, "leads")
	stop["replica 2"]()
	replicas.Wait()
	// Output:
	// replica 1 leads
	// replica 1 puts its work aside
	// replica 2 leads
	// replica 2 puts its work aside
}

// Each replica has a timer, and the timers differ. The slot is the time of the
// schedule that both mean.
func ExampleOnce() {
	store := memstore.New()
	defer store.Close()
	noon := time.Date(2026, 12, 4, 12, 0, 0, 0, time.UTC)

	for _, tick := range []struct {
		replica string
		at      time.Time
	}{
		{"replica 1", noon.Add(-2 * time.Second)}, // its clock is slow
		{"replica 2", noon.Add(3 * time.Second)},
		{"replica 2", noon.Add(time.Hour)},
	} {
		job := lease.Job{Name: "invoices", Owner: tick.replica}
		slot := tick.at.Round(time.Hour)
		ran, err := lease.Once(context.Background(), store, job, slot, func(context.Context, lease.Grant) error {
			fmt.Println(tick.replica, "sends the invoices of", slot.Format(time.TimeOnly))
			return nil
		})
		fmt.Println(ran, err)
	}
	// Output:
	// replica 1 sends the invoices of 12:00:00
	// true <nil>
	// false <nil>
	// replica 2 sends the invoices of 13:00:00
	// true <nil>
}

// Events are for logs and metrics. They come in order and delay nothing.
func ExampleJob() {
	store := memstore.New()
	defer store.Close()

	job := lease.Job{
		Name:   "cache warmer",
		Owner:  "replica 1",
		TTL:    30 * time.Second,
		Margin: 5 * time.Second, // it needs that long to stop
		NoWait: true,            // somebody else warms it? good
		Events: func(e lease.HoldEvent) {
			fmt.Printf("%s with token %d, error %v\n", e.Kind, e.Grant.Token, e.Err)
		},
	}
	fmt.Println(job.Validate())
	err := lease.Run(context.Background(), store, job, func(context.Context, lease.Grant) error {
		job := lease.Job{Name: job.Name, Owner: "replica 2", NoWait: true}
		err := lease.Run(context.Background(), store, job, func(context.Context, lease.Grant) error { return nil })
		fmt.Println("replica 2 is refused:", errors.Is(err, lease.ErrHeld))
		return nil
	})
	fmt.Println(err)
	// Unordered output:
	// <nil>
	// acquired with token 1, error <nil>
	// replica 2 is refused: true
	// released with token 1, error <nil>
	// <nil>
}

// A single instance needs no lease, and its code stays the same.
func ExampleJob_disabled() {
	job := lease.Job{Name: "queue", Disabled: true}
	err := lease.Run(context.Background(), nil, job, func(_ context.Context, g lease.Grant) error {
		fmt.Println(g.Token, g.Check())
		return nil
	})
	fmt.Println(err)
	// Output:
	// 0 <nil>
	// <nil>
}

// pool is a store that tells jobs to stop before it closes, as a node does.
type pool struct {
	*memstore.Store
	drain chan struct{}
	jobs  sync.WaitGroup
}

func (p *pool) Hold() (<-chan struct{}, func()) {
	p.jobs.Add(1)
	return p.drain, p.jobs.Done
}

func (p *pool) Close() error {
	close(p.drain)
	p.jobs.Wait()
	return p.Store.Close()
}

// Jobs return and release before their store is gone.
func ExampleDrainer() {
	store := &pool{Store: memstore.New(), drain: make(chan struct{})}
	began, done := make(chan struct{}), make(chan error)
	go func() {
		done <- lease.RunLoop(context.Background(), store, lease.Job{Name: "queue"}, func(ctx context.Context, g lease.Grant) error {
			close(began)
			<-ctx.Done()
			fmt.Println("stops, and still holds the lease:", g.Check() == nil)
			return nil
		})
	}()
	<-began
	fmt.Println("closed:", store.Close())
	fmt.Println("the loop ended with it:", errors.Is(<-done, lease.ErrClosed))
	// Output:
	// stops, and still holds the lease: true
	// closed: <nil>
	// the loop ended with it: true
}
