// Package state is the replicated state of raftlease and the commands that
// change it: a pure machine. What it does follows from the entries it applied,
// their indexes and their terms alone; it has no clock, no randomness, no
// configuration and no order of a map in it, so that replicas stay alike to the
// byte.
//
// # What is promised
//
//   - At every index one owner at most has a name (G1).
//   - Every new grant takes a token larger than all before it, of any name (G2).
//     The counter is in the snapshot, so nothing needs a tombstone.
//   - Data is written by the live token only (G7).
//   - A command counts only in the term that decided it (rule 13); Epoch, which
//     tells the term, counts in any.
//   - Every command has an outcome. What breaks the limits is Rejected without
//     effect; an entry or a snapshot that is not understood is a *FormatError,
//     and nothing of it is applied (G8).
//
// # What is not promised
//
// There are no times here. How long a grant lasts (G3) is decided by whoever
// proposes an Expire.
//
// # Formats
//
// Both are made of the same primitives: u is an unsigned varint in its shortest
// form, s is a u with the length and then the bytes.
//
//	entry    = version(1 byte, 1) u(term) u(commands) command…
//	command  = kind(1 byte) and the fields that its Kind names, in that order:
//	           Name, Owner s; Token, TTL u (nanoseconds); Data s;
//	           Session s(node) s(disk) u(incarnation);
//	           Ends u(ends) and for each s(name) u(token) u(revision)
//	snapshot = "RLSTATE" version(1 byte, 1) s(header) s(record)… sum
//	header   = s(cluster id) u(index) u(next token) u(records)
//	record   = s(name) flags(1 byte) u(revision)
//	           held:    s(owner) u(token) u(ttl in milliseconds)
//	           session: s(node) s(disk) u(incarnation)
//	           data:    s(data) u(data token)
//	flags    = 1 held, 2 session (only with 1), 4 data; never 0
//	sum      = SHA-256 of everything before it, 32 bytes
//
// Records come in byte order of their names. There is exactly one encoding of
// an entry's commands and of a state; any other is refused.
package state
