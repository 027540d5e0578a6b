// Package architecture keeps the rooms of raftlease apart: a table says which
// room may import what, and the tests hold the import graph of the whole module
// against it, for every system that is built for.
//
// It promises that a rule which is broken is named together with the chain of
// imports that breaks it, and that a new room is noticed. It looks at imports of
// non-test files only: what a test uses never reaches a user's binary.
package architecture
