// Package lease is the vocabulary of raftlease: what a lease store does, what
// a grant is, and how answers fail.
//
// A lease is a replicated record that says which owner has a name. A grant is
// what the owner got: name, owner, fencing token, ttl and a deadline on this
// process's own clock. A store grants a name to one owner at a time, and every
// new grant of a name carries a larger token than all before it (promise G2).
//
// # What is promised
//
// A store states its Guarantee. An Exclusive store never grants a name while
// an earlier grant may still be believed by its holder (G1, G3). Every store
// makes the holder know first: Grant.Check fails, by the local clock alone,
// before anybody else can be granted the name (G4).
//
// # What is not promised
//
// No lease stops a process that is frozen between Grant.Check and the act that
// follows it. Where that matters the resource has to check the token (G7). An
// Eventual store may, in documented situations, grant a name while a frozen
// holder has not looked at its clock yet.
package lease
