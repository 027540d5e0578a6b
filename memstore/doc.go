// Package memstore keeps leases in the memory of one process.
//
// It is for a service that runs as a single instance but is written against
// lease.Store, for tests, and as the reference of what a store does: it
// implements lease.Store, lease.Waiter, lease.Inspector, lease.DataStore and
// lease.Watcher, and passes leasetest.
//
// Promised: all of G1 to G4, G6 and G8 within the process (its Guarantee is
// lease.Exclusive), and G7 for data written with Put.
//
// Not promised: anything beyond the process. Nothing is stored, so tokens begin
// at 1 again in every Store (G2 holds for the life of one Store), and two
// processes, or two Stores, know nothing of each other.
package memstore
