package raftlease_test

import (
	"context"
	"fmt"
	"log"
	"net"
	"os"
	"time"

	"github.com/raftlease/raftlease"
	"github.com/raftlease/raftlease/lease"
)

// A replica that runs a job while no other replica does. With Peers set to all
// three replicas, the same code runs in each of them.
func Example() {
	dir, _ := os.MkdirTemp("", "raftlease")
	defer os.RemoveAll(dir)

	node, err := raftlease.Open(raftlease.Config{
		ID: "a", Dir: dir, Listen: "127.0.0.1:0", // Peers: map[string]string{"a": "10.0.0.1:7400", …}
	})
	if err != nil {
		log.Fatal(err)
	}
	defer node.Close() // waits for the job, hands leadership over

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	job := lease.Job{Name: "nightly-report", TTL: 15 * time.Second, Require: lease.Exclusive}
	err = lease.Run(ctx, node, job, func(ctx context.Context, g lease.Grant) error {
		// ctx ends before anybody else may hold the lease.
		fmt.Printf("holding %s with token %d\n", g.Name, g.Token)
		return nil
	})
	fmt.Println("done:", err)
	// Output:
	// holding nightly-report with token 1
	// done: <nil>
}

// Three nodes in one process, as a test of your service may want them.
func Example_threeNodes() {
	dir, _ := os.MkdirTemp("", "raftlease")
	defer os.RemoveAll(dir)
	peers := map[string]string{"a": freeAddr(), "b": freeAddr(), "c": freeAddr()} // such as 127.0.0.1:7400
	nodes := map[string]*raftlease.Node{}
	for id, addr := range peers {
		n, err := raftlease.Open(raftlease.Config{ID: id, Dir: dir + "/" + id, Listen: addr, Peers: peers})
		if err != nil {
			log.Fatal(err)
		}
		defer n.Close()
		nodes[id] = n
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	g, err := nodes["a"].Acquire(ctx, "migration", "deploy-1", 10*time.Second)
	if err != nil {
		log.Fatal(err)
	}
	_, err = nodes["b"].Acquire(ctx, "migration", "deploy-2", 10*time.Second)
	fmt.Println(g.Owner, "has token", g.Token)
	fmt.Println("the other is told:", err != nil)
	// Output:
	// deploy-1 has token 1
	// the other is told: true
}

// Keeping the checkpoint of a job in its lease: a stale token cannot write it.
func ExampleNode_Put() {
	dir, _ := os.MkdirTemp("", "raftlease")
	defer os.RemoveAll(dir)
	node, err := raftlease.Open(raftlease.Config{ID: "a", Dir: dir, Listen: "127.0.0.1:0"})
	if err != nil {
		log.Fatal(err)
	}
	defer node.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	first, _ := node.Acquire(ctx, "importer", "a", 10*time.Second)
	_ = node.Put(ctx, first, []byte("row 1000"))
	_ = node.Release(ctx, first)

	second, _ := node.Acquire(ctx, "importer", "b", 10*time.Second)
	r, _ := node.Get(ctx, "importer")
	fmt.Printf("goes on after %s, with token %d after %d\n", r.Data, second.Token, first.Token)
	fmt.Println(node.Put(ctx, first, []byte("row 900")))
	// Output:
	// goes on after row 1000, with token 2 after 1
	// put data of lease "importer": lease "importer" of owner "a" with token 1 is lost: released, now held by "b" with token 2
}

func freeAddr() string {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
}
