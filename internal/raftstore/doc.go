// Package raftstore is what a node keeps on disk: raft's log, its vote, its
// snapshots, and who the node is.
//
// It promises that a vote is stored as one value, that the highest term ever
// promised is known without a further write, that a disk which hangs or fails is
// reported once and then never trusted again, and that one process at a time
// has a directory. It does not repair damage: what cannot be read is refused
// with the file's name.
package raftstore
