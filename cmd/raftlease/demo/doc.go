// Package demo shows a cluster of three nodes keep its promises while it is
// crashed, frozen and cut off, and checks them.
//
// Each node is a process of its own with a real data directory and real sockets,
// and beside each runs a worker that wants the same job. The nodes reach each
// other only through links in the demo's own process, so that one can be cut off
// without rights over the machine's network. Nothing is simulated: a crash is
// SIGKILL, a freeze is SIGSTOP, and a cut lets no byte through in either
// direction.
//
// What is promised of the show: it ends without an error only if every act took
// place and every check held; nothing is left behind, no process and no file,
// also when it is interrupted. It needs a Unix.
package demo
