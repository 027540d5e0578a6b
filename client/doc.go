// Package client is a lease store for a process that is no member of the
// cluster: it asks the members over the network.
//
// A Client is a lease.Store, lease.Waiter, lease.Inspector, lease.DataStore and
// lease.Watcher, and has the operator's calls of a cluster. Any member answers
// any call, so it needs no leader; a member that is dead, cut off or slow is
// passed over for the next address.
//
// # What is promised
//
// The promises of the cluster reach the caller: its Guarantee is
// lease.Exclusive. A grant counts from before the attempt that won it was sent,
// so that neither a slow answer nor a retry makes its holder believe for too
// long (G4). Refused, not done and perhaps done stay three different answers
// (G6): a call is tried until its ctx ends, and ErrUnavailable then means that
// no attempt can have had an effect. A watch that moves to another member loses
// no event and repeats none.
//
// # What is not promised
//
// An attempt that timed out may still be carried out later by a member that was
// frozen. What that can do: an acquire leaves a grant that nobody uses, which
// ends with its ttl; a put writes an older value over a newer one of the same
// grant, so a value should be able to tell its age. A release of unknown outcome
// could end a grant that its owner has acquired again since, so a Client repeats
// such a release before it acquires that name for that owner; another process
// that uses the same owner does not know of it. Owners should be unique to a
// process.
//
// An AcquireWait whose ctx ended is looked after for 2 s more: a grant that it
// may have won is released. If no member answers for that long, the grant ends
// with its ttl.
//
// There is no TLS and no authentication: what is sent can be read and changed
// on its way.
package client
