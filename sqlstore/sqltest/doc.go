// Package sqltest has the tests of sqlstore that need a database. It is a module
// of its own, so that drivers and what they need reach neither the go.mod of
// raftlease nor that of a service that uses it.
//
// SQLite runs in the process. For PostgreSQL the tests start a private server in
// a temporary directory from the programs that are installed (Debian: apt-get
// install postgresql); without them they are skipped, except where CI is set,
// where they fail. SQL Server is used when RAFTLEASE_SQLSERVER_DSN names one, as
// in
//
//	RAFTLEASE_SQLSERVER_DSN='sqlserver://sa:password@127.0.0.1:1433?database=tempdb' go test ./...
//
// and is skipped otherwise, also in CI: its statements are written down and
// compared in sqlstore, which proves nothing about what a server does with them.
package sqltest
