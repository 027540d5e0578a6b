// Package transport is everything a node says over the network: one port that
// carries both raft's own stream and HTTP, the handshake that opens a raft
// connection, and the raft.Transport built on it.
//
// It promises that a connection reaches raft only after both ends agreed on the
// cluster and on who is who, that one port serves both protocols, that nobody
// who keeps silent holds a place for long, and that Close leaves no connection
// and no goroutine behind. Every byte goes through a Network, so that a
// simulation over transport/memnet runs the same code as TCP.
//
// It does not promise secrecy and does not prove identity: without TLS anybody
// who reaches the port and knows the cluster id can speak as a member. That is
// why Listen accepts only loopback addresses unless Insecure is set.
package transport
