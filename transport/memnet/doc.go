// Package memnet is a network in memory with faults, for tests of what stands on
// transport.Network. Every link between two hosts, in each direction, can be
// slowed message by message, can lose, and can be cut.
//
// It behaves as TCP does towards a program: bytes arrive in order or not at all.
// So a message that is lost takes its connection with it, as when a packet is
// lost for good, and what is written into a cut link waits for the link to be
// mended. It knows no time but package time's, and runs in a testing/synctest
// bubble: no goroutine is its own, and none waits while it holds a lock.
package memnet
