// Package wire translates between the vocabulary of package lease and the
// protobuf messages that travel between processes.
//
// What it promises: an error of package lease that goes over the wire and back
// is the same kind of error with the same data, and one that it does not know
// never turns into a refusal. It decides nothing and keeps nothing.
package wire
