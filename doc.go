// Package raftlease lets the replicas of a Go service agree which one of them
// may run a job. Each replica embeds a Node; the nodes form a Raft cluster inside
// the service's own processes, and the replicated state holds leases.
//
// # What is promised
//
//   - No two owners hold one name, and every grant carries a larger fencing token
//     than all before it (G1, G2).
//   - A grant lasts its ttl whatever leaders crash, freeze or are cut off (G3),
//     and its holder knows first when it is over, by its own clock (G4).
//   - What was acknowledged survives the crash of any minority and kill -9 of
//     all nodes (G5).
//
// # What is not promised
//
// No lease stops a process that is frozen between its check and its act: the
// resource has to check the token, or the data has to be kept in the lease with
// Put (G7). Without a majority of nodes nothing is granted. The clocks of two
// machines are assumed to run at the same rate within 0.1 %; their times do not
// matter.
package raftlease

import "github.com/raftlease/raftlease/lease"

// LeaseStore is lease.Store under the name that people look for.
type LeaseStore = lease.Store
