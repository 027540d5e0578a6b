// Package cluster is about whole clusters of real processes: its tests kill them
// with SIGKILL, stop them with SIGSTOP and look at what clients and holders then
// see. It has no code of its own outside its tests.
package cluster
