package raftlease

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/raftlease/raftlease/lease"
)

// Case 17: Close waits for jobs, whose leases are released when they have
// returned and not before.
func TestNode_CloseDrainsJobs(t *testing.T) {
	c := openCluster(t, "a", "b", "c")
	n := c.follower()
	started, asked, finish := make(chan struct{}), make(chan struct{}), make(chan struct{})
	result := make(chan error, 1)
	go func() {
		result <- lease.Run(context.Background(), n, lease.Job{Name: "job", TTL: ttl, Require: lease.Exclusive},
			func(ctx context.Context, _ lease.Grant) error {
				close(started)
				<-ctx.Done()
				if !errors.Is(context.Cause(ctx), lease.ErrClosed) {
					t.Errorf("cause %v, want %v", context.Cause(ctx), lease.ErrClosed)
				}
				close(asked)
				<-finish
				return nil
			})
	}()
	<-started
	closed := make(chan error, 1)
	go func() { closed <- n.Close() }()
	<-asked
	if _, err := c.leader().Acquire(testContext(t), "job", "another", ttl); !errors.Is(err, lease.ErrHeld) {
		t.Errorf("acquire while the job stops: %v, want %v", err, lease.ErrHeld)
	}
	select {
	case err := <-closed:
		t.Fatalf("closed before the job has returned: %v", err)
	default:
	}
	close(finish)
	if err := <-closed; err != nil {
		t.Error(err)
	}
	<-result
	delete(c.nodes, n.ID())
	acquire(t, c.leader(), "job", "another") // released, long before its ttl
}

func TestNode_CloseDoesNotWaitForEver(t *testing.T) {
	n, err := Open(Config{ID: "a", Dir: t.TempDir(), Listen: "127.0.0.1:0", DrainTimeout: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	drain, release := n.Hold()
	defer release()
	if err := n.Close(); err != nil {
		t.Error(err)
	}
	<-drain
	if again, release := n.Hold(); true {
		<-again // closed already
		release()
		release() // once is enough, twice does no harm
	}
}

func TestNode_CloseIsIdempotentAndEndsCalls(t *testing.T) {
	n := openOne(t, lease.Limits{})
	acquire(t, n, "job", "owner")
	waiting := make(chan error, 1)
	go func() {
		_, err := n.AcquireWait(context.Background(), "job", "another", ttl)
		waiting <- err
	}()
	watching := make(chan error, 1)
	go func() { watching <- n.Watch(context.Background(), "", 0, func(lease.Event) error { return nil }) }()
	eventually(t, "both are under way", func() bool { return n.Status().Leases == 1 })
	for range 2 {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	}
	for what, c := range map[string]chan error{"wait": waiting, "watch": watching} {
		if err := <-c; !errors.Is(err, lease.ErrClosed) {
			t.Errorf("%s: %v, want %v", what, err, lease.ErrClosed)
		}
	}
	if _, err := n.Get(context.Background(), "job"); !errors.Is(err, lease.ErrClosed) {
		t.Errorf("get: %v, want %v", err, lease.ErrClosed)
	}
	if s := n.Status(); s.State != stateStopping {
		t.Errorf("state %q, want %q", s.State, stateStopping)
	}
	if n.Err() != nil {
		t.Errorf("stopped by itself: %v", n.Err())
	}
}
