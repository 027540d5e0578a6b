package fence_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/raftlease/raftlease/fence"
	"github.com/raftlease/raftlease/lease"
	"github.com/raftlease/raftlease/memstore"
)

// A holder freezes, another takes over, the first one wakes: its write is
// refused by the resource, whatever it believes.
func ExampleGate() {
	store := memstore.New()
	defer store.Close()
	ctx := context.Background()
	gate := fence.NewGate(fence.NewMemory())
	write := func(g lease.Grant, what string) {
		err := gate.Do(ctx, g.Name, g.Token, func(context.Context) error {
			fmt.Println("written:", what)
			return nil
		})
		if err != nil {
			fmt.Println(err)
		}
	}

	first, _ := store.Acquire(ctx, "report", "replica 1", time.Minute)
	write(first, "page 1")
	store.Break(ctx, "report") // replica 1 is frozen, and its ttl passes

	second, _ := store.Acquire(ctx, "report", "replica 2", time.Minute)
	write(second, "page 1 again")
	write(first, "page 2") // replica 1 wakes between its check and its act
	// Output:
	// written: page 1
	// written: page 1 again
	// token 1 of lease "report" is stale: 2 was seen, acquire the lease again
}

// The headers carry name and token from the job to the resource.
func ExampleHandler() {
	gate := fence.NewGate(fence.NewMemory())
	resource := httptest.NewServer(fence.Handler(gate, "queue", http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) {
			fmt.Println("served", r.Method, "under token", r.Header.Get(fence.HeaderToken))
		})))
	defer resource.Close()

	store := memstore.New()
	defer store.Close()
	job := lease.Job{Name: "queue", Owner: "replica 1"}
	err := lease.Run(context.Background(), store, job, func(ctx context.Context, g lease.Grant) error {
		client := http.Client{Transport: &fence.Transport{Grant: g}}
		for range 2 {
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, resource.URL, strings.NewReader("row"))
			if err != nil {
				return err
			}
			answer, err := client.Do(r)
			if err != nil {
				return err
			}
			answer.Body.Close()
			if err := fence.Refused(answer); err != nil {
				return err
			}
			// In the meantime the resource hears from a later holder.
			if err := gate.Check(ctx, "queue", 2); err != nil {
				return err
			}
		}
		return nil
	})
	fmt.Println(errors.Is(err, fence.ErrStale), err)
	// Output:
	// served POST under token 1
	// true token 1 of lease "queue" is stale: 2 was seen, acquire the lease again
}

// One handler for resources under different leases. The path decides which
// lease that is.
func ExampleHandlerFunc() {
	gate := fence.NewGate(fence.NewMemory())
	h := fence.HandlerFunc(gate, func(r *http.Request) string { return "shard" + r.URL.Path },
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "done") }))

	for _, g := range []lease.Grant{{Name: "shard/1", Token: 7}, {Name: "shard/2", Token: 7}} {
		r := httptest.NewRequest(http.MethodPut, "/1", nil)
		fence.SetHeader(r.Header, g)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		fmt.Println(w.Code, strings.TrimSpace(w.Body.String()))
	}
	// Output:
	// 200 done
	// 412 the request is made under lease "shard/2", want "shard/1"
}

// A service in another framework reads the headers itself.
func ExampleFromHeader() {
	h := http.Header{}
	fence.SetHeader(h, lease.Grant{Name: "nightly report", Token: 42})
	name, token, err := fence.FromHeader(h)
	fmt.Println(name, token, err)
	_, _, err = fence.FromHeader(http.Header{})
	fmt.Println(errors.Is(err, lease.ErrNotFound))
	// Output:
	// nightly report 42 <nil>
	// true
}

// The marks of a resource that lives on disk have to outlive the process.
func ExampleOpenFile() {
	dir, err := os.MkdirTemp("", "fence")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	for _, token := range []uint64{7, 8, 7} {
		marks, err := fence.OpenFile(filepath.Join(dir, "marks"))
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(fence.NewGate(marks).Check(ctx, "archive", token))
		marks.Close() // the process ends
	}
	// Output:
	// <nil>
	// <nil>
	// token 7 of lease "archive" is stale: 8 was seen, acquire the lease again
}
