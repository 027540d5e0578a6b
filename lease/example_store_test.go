package lease_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/raftlease/raftlease/lease"
	"github.com/raftlease/raftlease/memstore"
)

// The three verbs of an owner. lease.Run does all this for a job.
func ExampleStore() {
	store := memstore.New()
	defer store.Close()
	ctx := context.Background()

	g, err := store.Acquire(ctx, "nightly report", "replica 1", 30*time.Second)
	if err != nil {
		fmt.Println("acquire:", err)
		return
	}
	fmt.Printf("%s holds %q with token %d\n", g.Owner, g.Name, g.Token)

	// Before every act that must not happen twice.
	if err := g.Check(); err != nil {
		fmt.Println("check:", err)
		return
	}

	g, err = store.Renew(ctx, g, 30*time.Second)
	fmt.Println("renewed:", g.Token, err)

	fmt.Println("released:", store.Release(ctx, g))

	_, err = store.Renew(ctx, g, 30*time.Second)
	fmt.Println(errors.Is(err, lease.ErrLost), err)
	// Output:
	// replica 1 holds "nightly report" with token 1
	// renewed: 1 <nil>
	// released: <nil>
	// true lease "nightly report" of owner "replica 1" with token 1 is lost: released
}

// Denied and failed are different answers, and each tells what to do next.
func ExampleHeldError() {
	store := memstore.New()
	defer store.Close()
	ctx := context.Background()
	if _, err := store.Acquire(ctx, "migration", "replica 1", time.Minute); err != nil {
		fmt.Println(err)
		return
	}

	_, err := store.Acquire(ctx, "migration", "replica 2", time.Minute)
	var held *lease.HeldError
	switch {
	case errors.As(err, &held):
		fmt.Printf("%s has it, ask again within %v\n", held.Owner, held.Remaining.Round(time.Minute))
	case errors.Is(err, lease.ErrUnavailable), errors.Is(err, lease.ErrUnknownOutcome):
		fmt.Println("repeat the call: that is always safe")
	}
	// Output:
	// replica 1 has it, ask again within 1m0s
}

// runOnce is written against the interface. Which store it is decides how
// exclusive it is, and a job that needs more can refuse.
func runOnce(ctx context.Context, store lease.Store, owner string, job func()) error {
	if store.Guarantee() != lease.Exclusive {
		return fmt.Errorf("run once: the store is %v, want %v", store.Guarantee(), lease.Exclusive)
	}
	g, err := store.Acquire(ctx, "warm the cache", owner, time.Minute)
	if errors.Is(err, lease.ErrHeld) {
		return nil // somebody does it
	}
	if err != nil {
		return fmt.Errorf("run once: %w", err)
	}
	job()
	return store.Release(ctx, g)
}

// eventual stands for a store with a weaker guarantee, such as an SQL table.
type eventual struct{ lease.Store }

func (eventual) Guarantee() lease.Guarantee { return lease.Eventual }

// The same job on another store: only the value changes.
func ExampleGuarantee() {
	memory := memstore.New()
	defer memory.Close()
	for _, store := range []lease.Store{memory, eventual{memory}} {
		err := runOnce(context.Background(), store, "replica 1", func() { fmt.Println("warming") })
		fmt.Println(store.Guarantee(), err)
	}
	// Output:
	// warming
	// exclusive <nil>
	// eventual run once: the store is eventual, want exclusive
}

// A holder that needs time to stop gives itself a margin.
func ExampleGrant_WithMargin() {
	store := memstore.New()
	defer store.Close()
	g, err := store.Acquire(context.Background(), "queue", "replica 1", time.Minute)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(g.Remaining().Round(10*time.Second), g.WithMargin(20*time.Second).Remaining().Round(10*time.Second))
	fmt.Println(g.WithMargin(time.Hour).Check())
	// Output:
	// 1m0s 40s
	// lease "queue" of owner "replica 1" with token 1 is lost: expired
}
