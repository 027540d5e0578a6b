// Package granter is the half of a node that runs only while it leads: it
// decides grants, renewals and expiries for one term.
//
// Deadlines live here, in memory, on a clock that can only be slow. The
// replicated state has no times; it is changed only through the log. What is
// promised (docs/DESIGN.md has the argument):
//
//   - A grant lasts at least its ttl from every moment at which it was granted or
//     renewed (G3). After a change of leader every grant gets a fresh full ttl.
//   - A renewal writes nothing to the log. It moves the deadline first and is
//     answered only after a majority confirmed that no later term has begun.
//   - A refusal is confirmed in the same way, so it was true when it was given.
//   - Only a committed Expire frees a name, and only in the term that decided it.
//
// A Granter serves exactly one term. When that term is over every call returns
// "not leader", and a new leader has a new Granter.
package granter
