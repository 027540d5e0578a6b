package client_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/raftlease/raftlease/client"
	"github.com/raftlease/raftlease/lease"
)

// A process that is no member of the cluster does the nightly report if no other
// one does. Any member can be asked; give as many as there are.
func ExampleDial() {
	c, err := client.Dial("10.0.0.1:7600", "10.0.0.2:7600", "10.0.0.3:7600")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	g, err := c.Acquire(ctx, "nightly report", "host 1, process 4711", 30*time.Second)
	switch {
	case errors.Is(err, lease.ErrHeld):
		fmt.Println("another process does it")
		return
	case err != nil:
		fmt.Println(err)
		return
	}
	defer c.Release(context.WithoutCancel(ctx), g)
	fmt.Println("token for the resource to compare:", g.Token)
}

// Everything that is wrong is reported at once.
func ExampleOpen() {
	_, err := client.Open(client.Config{
		Addrs:  []string{"10.0.0.1:7600", "10.0.0.2"},
		Limits: lease.Limits{MinTTL: time.Minute, MaxTTL: time.Second},
	})
	fmt.Println(err)
	// Output:
	// invalid argument: Addrs[1] is "10.0.0.2", want host:port with a port of 1 to 65535; Limits is "1m0s to 1s", want within 1ms to 8760h0m0s, the smaller first
}
