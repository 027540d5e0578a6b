// Package rpc is the client and the server of the services in
// proto/raftlease/v1: Connect over HTTP/2 without TLS, so that any gRPC client,
// curl and a browser can speak to a node as well.
//
// It promises that sizes are limited on both sides, that a peer which died
// without a word is noticed by pings, that an error detail survives the way, and
// that a call which never left this process can be told from one that may have
// arrived (NotSent). It does not know what the services mean.
package rpc

import "time"

const (
	// maxRequest is the largest request a node reads: a full batch of
	// forwarded puts stays below.
	maxRequest = 8 << 20
	// maxResponse is the largest response a client reads, such as a list of
	// leases.
	maxResponse = 64 << 20

	dialTimeout = 5 * time.Second
	pingAfter   = 5 * time.Second // of silence on a connection
	pingTimeout = 3 * time.Second
	idleTimeout = 2 * time.Minute

	// lateTimeout is how long Server.Close waits for handlers that are still
	// busy after their contexts and their connections have ended.
	lateTimeout = time.Second

	// maxStreams is the number of calls under way on one connection; every
	// parked waiter is one.
	maxStreams = 1 << 14
)
