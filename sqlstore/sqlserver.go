package sqlstore

import (
	"errors"
	"strings"
)

// SQLServer is SQL Server 2016 and later, by github.com/microsoft/go-mssqldb
// under its driver name "sqlserver".
//
// It is NOT tested against a server in this project's own runs, where none can
// be had: there only the text of its statements is held against a golden file.
// The tests run for real with a connection string in RAFTLEASE_SQLSERVER_DSN;
// see sqlstore/sqltest.
//
// A transaction that holds its lease by Store.Check keeps renewals of that
// lease waiting until it ends.
var SQLServer = Dialect{
	name:       "sqlserver",
	quote:      func(s string) string { return "[" + s + "]" },
	statements: sqlserverStatements,
	judge:      judgeSQLServer,
	prefix:     like,
}

// Within one statement this is a constant that is read before the statement
// waits for locks; so batches lock in a statement of its own before that.
const sqlserverClock = `DATEDIFF_BIG(millisecond, '1970-01-01T00:00:00', SYSUTCDATETIME())`

// 255 bytes of UTF-8 are at most 255 units of UTF-16. The collation compares
// units. That trailing spaces do not count in a comparison matters to no name
// and no owner, which have none.
const sqlserverLeases = `
IF OBJECT_ID(N'{leases}', N'U') IS NULL
CREATE TABLE {leases} (
  name       nvarchar(255) COLLATE Latin1_General_100_BIN2 NOT NULL PRIMARY KEY, -- compared exactly
  owner      nvarchar(255) COLLATE Latin1_General_100_BIN2 NOT NULL,             -- '' when released
  token      bigint NOT NULL,                                                    -- of the last grant; stays after release
  ttl        bigint NOT NULL,                                                    -- asked for, in milliseconds
  expires    bigint NOT NULL,                                                    -- UTC milliseconds, by the database's clock
  data_token bigint NOT NULL,                                                    -- the token that wrote data; 0 when there is none
  data       varbinary(max) NULL,                                                -- kept by Put
  updated    bigint NOT NULL                                                     -- UTC milliseconds of the last change
)`

const sqlserverTokens = `
IF OBJECT_ID(N'{tokens}', N'U') IS NULL
CREATE TABLE {tokens} (
  id    int NOT NULL PRIMARY KEY CHECK (id = 1),
  token bigint NOT NULL -- the last one granted, of all names
)`

const sqlserverFirstToken = `
INSERT INTO {tokens} (id, token)
SELECT 1, COALESCE(MAX(token), 0) FROM {leases}
HAVING NOT EXISTS (SELECT 1 FROM {tokens} WHERE id = 1)`

// sqlserverLocked opens a batch that changes one row: it locks the row and then
// reads the clock. An error in it ends the batch and undoes all of it.
const sqlserverLocked = `
SET NOCOUNT ON;
SET XACT_ABORT ON;
DECLARE @now bigint, @token bigint, @done int;
BEGIN TRANSACTION;
SELECT @token = token FROM {leases} WITH (UPDLOCK, ROWLOCK) WHERE name = @p1;
SET @now = {clock};
`

const sqlserverDone = `
SET @done = @@ROWCOUNT;
COMMIT TRANSACTION;
SELECT @token WHERE @done = 1;`

// See postgresAcquire for the token last seen. Comparisons are with columns,
// since the collation of a variable is the database's. Without the row of
// {tokens} the new token is NULL, which the table refuses.
const sqlserverAcquire = sqlserverLocked + `
IF EXISTS (SELECT 1 FROM {leases} WHERE name = @p1 AND token = @p3 AND (owner = N'' OR expires <= @now))
BEGIN
  SET @token = NULL;
  UPDATE {tokens} SET @token = token = CASE WHEN token > @p3 THEN token ELSE @p3 END + 1 WHERE id = 1;
END;
UPDATE {leases} SET
  owner   = @p2,
  token   = @token,
  ttl     = CASE WHEN @now + @p5 >= expires THEN @p4 ELSE ttl END,
  expires = CASE WHEN @now + @p5 >= expires THEN @now + @p5 ELSE expires END,
  updated = @now
WHERE name = @p1 AND token = @p3 AND (owner = N'' OR owner = @p2 OR expires <= @now);` + sqlserverDone

const sqlserverRenew = sqlserverLocked + `
UPDATE {leases} SET
  ttl     = CASE WHEN @now + @p5 >= expires THEN @p4 ELSE ttl END,
  expires = CASE WHEN @now + @p5 >= expires THEN @now + @p5 ELSE expires END,
  updated = @now
WHERE name = @p1 AND owner = @p2 AND token = @p3 AND expires > @now;` + sqlserverDone

const sqlserverPut = sqlserverLocked + `
UPDATE {leases} SET data = @p4, data_token = @p5, updated = @now
WHERE name = @p1 AND owner = @p2 AND token = @p3 AND expires > @now;` + sqlserverDone

// sqlserverCheck is a batch within the caller's transaction.
const sqlserverCheck = `
SET NOCOUNT ON;
DECLARE @owner nvarchar(255), @token bigint, @ttl bigint, @expires bigint;
SELECT @owner = owner, @token = token, @ttl = ttl, @expires = expires
FROM {leases} WITH (UPDLOCK, ROWLOCK) WHERE name = @p1;
SELECT @owner, @token, @ttl, @expires, {clock} WHERE @token IS NOT NULL;`

func sqlserverStatements(t table) statements {
	text := func(s string) string { return fill(s, t, "{clock}", sqlserverClock) }
	const row = `owner, token, ttl, expires, {clock}`
	return statements{
		schema: []string{text(sqlserverLeases), text(sqlserverTokens), text(sqlserverFirstToken)},
		probe:  text(`SELECT token, (SELECT COUNT(*) FROM {leases} WHERE name = N'') FROM {tokens} WHERE id = 1`),

		read: text(`SELECT ` + row + ` FROM {leases} WHERE name = @p1`),
		get:  text(`SELECT ` + row + `, data_token, data FROM {leases} WHERE name = @p1`),
		list: text(`SELECT name, ` + row + `, data_token, data FROM {leases}
WHERE name LIKE @p1 ESCAPE N'\'
  AND (data_token > 0 OR owner <> N'' AND expires > {clock})
ORDER BY name`),
		// Two that find nothing both insert; the key refuses the second.
		create: text(`INSERT INTO {leases} (name, owner, token, ttl, expires, data_token, updated)
SELECT @p1, N'', 0, 0, 0, 0, {clock} WHERE NOT EXISTS (SELECT 1 FROM {leases} WHERE name = @p1)`),
		acquire: text(sqlserverAcquire),
		renew:   text(sqlserverRenew),
		put:     text(sqlserverPut),
		release: text(`UPDATE {leases} SET owner = N'', ttl = 0, expires = 0, updated = {clock}
OUTPUT inserted.token WHERE name = @p1 AND owner = @p2 AND token = @p3`),
		check: text(sqlserverCheck),
	}
}

// like is Dialect.prefix for names that are not ordered by the byte.
func like(prefix string) []any {
	return []any{strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`, `[`, `\[`).Replace(prefix) + "%"}
}

// fatalClass is the severity from which on an error ends the connection.
const fatalClass = 20

// judgeSQLServer goes by the number and the severity of the error.
func judgeSQLServer(err error) verdict {
	var e interface {
		SQLErrorNumber() int32
		SQLErrorClass() uint8
	}
	if !errors.As(err, &e) || e.SQLErrorClass() >= fatalClass {
		return unclear
	}
	switch e.SQLErrorNumber() {
	case 1205, 1222, 3960, 3961: // dead-lock, lock time-out, changed under a snapshot
		return repeat
	case 2601, 2627, 2714, 1913: // duplicate key, table, index
		return exists
	}
	return undone
}
