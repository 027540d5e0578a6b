// Package sqlstore keeps leases in a table of an ordinary SQL database:
// PostgreSQL, SQL Server or SQLite. It needs nothing that a service with a
// database does not have already.
//
//	store, err := sqlstore.Open(db, sqlstore.Postgres)
//	…
//	err = store.EnsureSchema(ctx) // or run the text of store.Schema() yourself
//
// It uses database/sql alone and imports no driver.
//
// # What is promised
//
// One name has one row, so the database's own order of changes decides who has
// it. While the database keeps what it committed and its clock runs steadily,
// the store keeps G1 to G4: a name is granted to nobody else before the ttl has
// passed since the holder sent its last successful request, and the holder's own
// clock ends the grant before that. G2, G6 and G8 hold as in every store, G5 as
// far as the database is durable. Put judges the token in the statement that
// writes, and Check makes work in the same database strictly exclusive (G7).
//
// # What is not promised: Eventual
//
// The Guarantee is lease.Eventual. At most one owner per name once everybody has
// looked at the clock and at the database; before that, two may believe at once
// in exactly these situations:
//
//   - A holder freezes past its ttl between Grant.Check and the act that follows
//     (a stopped process, a paused virtual machine). The next one is granted the
//     name, and the first acts once more when it wakes, until it looks again.
//     This holds for every lease, also on an Exclusive store.
//   - The database's clock is set forward: all leases that are shorter than the
//     step end at once, while their holders go on for up to their ttl. Holders
//     count on clocks of their own, so no step of an application's clock does
//     this.
//   - The database fails over to a copy that lacks the last commits, or is
//     restored from a backup. A grant that was lost in this way is given again,
//     while its holder goes on for up to its ttl, and the token may be given
//     again too: the two cannot be told apart, and fencing does not help. Before
//     the services start on such a copy, let the longest ttl pass and raise the
//     last token: UPDATE raftlease_tokens SET token = token + 4294967296.
//
// The tests of the module sqlstore/sqltest show each of these overlaps. If two
// holders at once would cost more than a Raft cluster does, use that instead,
// and let the job require lease.Exclusive, which refuses this store.
//
// # Time
//
// Every time in the table is the database's, in UTC milliseconds, read in the
// statement that uses it and after the row was locked. No time zone, isolation
// level or clock of an application matters. On SQLite, which has no server, it
// is the wall clock of the process that asks: setting the machine's clock
// forward is then a step of the database's clock, and the machine that runs the
// job, whose clock is set more often than a server's, is the database's machine.
//
// # Statements
//
// Each operation is one statement, or one batch that the server runs to its end
// by itself: a process that freezes leaves no row locked behind. A renewal is one
// statement, a refused acquire one that locks nothing, a grant two, the first
// grant of a name three. Nothing depends on the session, so a pooler of
// transactions may be in between. Dead-locks, serialisation failures and busy
// databases are tried again until the context ends, and each attempt counts the
// grant from its own start.
//
// An error is ErrUnavailable when the database said that it did not do it, or
// when nothing was sent, and ErrUnknownOutcome when the connection broke or the
// context ended in between. A repeated acquire is safe then: what was abandoned
// on its way finds another token in the record when it arrives, and does
// nothing.
//
// # The table
//
// A row stays when its lease is released, since it carries the token. A second
// table has one row with the last token of all names, so that tokens rise also
// when rows are deleted: a row whose lease is free and whose data nobody needs
// may be deleted at any time. Granting, but not renewing, changes that one row;
// so all grants of a table together are as many as the database can commit one
// after the other. If both tables are emptied, tokens begin at 1 again.
//
// Keep Config.Table out of backups that are restored while holders are alive.
package sqlstore
