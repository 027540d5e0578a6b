// Package fence holds the checks for the resource's side of a lease (G7).
//
// No lease can stop a process that is frozen between its check and its act. It
// wakes, believes that it still holds, and writes. So every grant carries a
// token that is larger than those of all earlier grants of the name, the holder
// sends it along, and the resource refuses a token below the highest that it has
// seen. This package is the resource's half of that, and the transport for both.
//
// # When a lease alone is enough
//
// When two holders at once cost only work that is done twice: a cache warmed
// twice, a queue polled twice whose messages are idempotent. A lease alone is
// also enough where no act takes effect after the process was frozen, which
// hardly any program can know. It is not enough where a late write destroys
// something: a file overwritten, money moved, a migration applied. Then the
// resource has to compare tokens. If its data fits in the lease, keep it there
// (lease.DataStore); if it is a database table, compare in the transaction that
// writes; for everything else there is Gate.
//
// # What is not promised
//
// A Gate protects what is done through it, in the process that has it, and what
// other processes do through gates on the same marks. A resource that can be
// reached past the gate is not protected.
package fence
