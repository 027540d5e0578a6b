package sqlstore

import (
	"errors"
	"strings"
)

// SQLite is SQLite 3.35 and later, for processes of one machine that share a
// file on a local disk. Tested with modernc.org/sqlite; the statements are the
// same for github.com/mattn/go-sqlite3. WAL mode is advised, since readers do
// not wait there.
//
// There is no server, so the clock is that of the process that asks. All
// processes of one machine read the same clock; one that is set forward ends
// leases early, as a step of a server's clock does. A file on a network disk,
// shared by machines, is not supported.
//
// A write locks the whole database: Store.Check keeps all other writers waiting
// until the caller's transaction ends, renewals too.
var SQLite = Dialect{
	name:       "sqlite",
	quote:      func(s string) string { return `"` + s + `"` },
	statements: sqliteStatements,
	judge:      judgeSQLite,
	prefix:     between,
}

// 'now' is one moment for the whole statement, first read after the write lock
// was got. 2440587.5 is the Julian day of 1970.
const sqliteClock = `CAST(round((julianday('now') - 2440587.5) * 86400000.0) AS INTEGER)`

const sqliteLeases = `
CREATE TABLE IF NOT EXISTS {leases} (
  name       TEXT NOT NULL PRIMARY KEY COLLATE BINARY, -- compared byte by byte
  owner      TEXT NOT NULL COLLATE BINARY,             -- '' when released
  token      INTEGER NOT NULL,                         -- of the last grant; stays after release
  ttl        INTEGER NOT NULL,                         -- asked for, in milliseconds
  expires    INTEGER NOT NULL,                         -- UTC milliseconds
  data_token INTEGER NOT NULL,                         -- the token that wrote data; 0 when there is none
  data       BLOB,                                     -- kept by Put
  updated    INTEGER NOT NULL                          -- UTC milliseconds of the last change
)`

const sqliteTokens = `
CREATE TABLE IF NOT EXISTS {tokens} (
  id    INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
  token INTEGER NOT NULL -- the last one granted, of all names
)`

const sqliteFirstToken = `
INSERT INTO {tokens} (id, token)
SELECT 1, coalesce(max(token), 0) FROM {leases} WHERE true
ON CONFLICT (id) DO NOTHING`

// One statement of SQLite changes one table; the trigger makes it change both.
const sqliteTrigger = `
CREATE TRIGGER IF NOT EXISTS {trigger} AFTER UPDATE OF token ON {bareLeases}
WHEN new.token > old.token
BEGIN
  UPDATE {bareTokens} SET token = new.token WHERE token < new.token;
END`

// See postgresAcquire for the token last seen. Without the row of {tokens} the
// new token is NULL, which the table refuses.
const sqliteAcquire = `
UPDATE {leases} SET
  owner   = ?2,
  token   = CASE WHEN owner = '' OR expires <= {clock}
            THEN max(?3, (SELECT token FROM {tokens} WHERE id = 1)) + 1 ELSE token END,
  ttl     = CASE WHEN {clock} + ?5 >= expires THEN ?4 ELSE ttl END,
  expires = max(expires, {clock} + ?5),
  updated = {clock}
WHERE name = ?1 AND token = ?3 AND (owner = '' OR owner = ?2 OR expires <= {clock})
RETURNING token`

const sqliteRenew = `
UPDATE {leases} SET
  ttl     = CASE WHEN {clock} + ?5 >= expires THEN ?4 ELSE ttl END,
  expires = max(expires, {clock} + ?5),
  updated = {clock}
WHERE name = ?1 AND owner = ?2 AND token = ?3 AND expires > {clock}
RETURNING token`

func sqliteStatements(t table) statements {
	text := func(s string) string { return fill(s, t, "{clock}", sqliteClock) }
	const row = `owner, token, ttl, expires, {clock}`
	return statements{
		schema: []string{text(sqliteLeases), text(sqliteTokens), text(sqliteTrigger), text(sqliteFirstToken)},
		probe:  text(`SELECT token, (SELECT count(*) FROM {leases} WHERE name = '') FROM {tokens} WHERE id = 1`),

		read: text(`SELECT ` + row + ` FROM {leases} WHERE name = ?1`),
		get:  text(`SELECT ` + row + `, data_token, data FROM {leases} WHERE name = ?1`),
		list: text(`SELECT name, ` + row + `, data_token, data FROM {leases}
WHERE name >= ?1 AND (?2 = '' OR name < ?2)
  AND (data_token > 0 OR owner <> '' AND expires > {clock})
ORDER BY name`),
		create: text(`INSERT INTO {leases} (name, owner, token, ttl, expires, data_token, updated)
VALUES (?1, '', 0, 0, 0, 0, {clock}) ON CONFLICT (name) DO NOTHING`),
		acquire: text(sqliteAcquire),
		renew:   text(sqliteRenew),
		release: text(`UPDATE {leases} SET owner = '', ttl = 0, expires = 0, updated = {clock}
WHERE name = ?1 AND owner = ?2 AND token = ?3 RETURNING token`),
		put: text(`UPDATE {leases} SET data = ?4, data_token = ?5, updated = {clock}
WHERE name = ?1 AND owner = ?2 AND token = ?3 AND expires > {clock}
RETURNING token`),
		// A read would lock nothing that keeps a writer out.
		check: text(`UPDATE {leases} SET updated = updated WHERE name = ?1 RETURNING ` + row),
	}
}

// Result codes of SQLite, without the extension in the upper bytes.
const (
	sqliteBusy       = 5
	sqliteLocked     = 6
	sqliteInterrupt  = 9
	sqliteIOErr      = 10
	sqliteConstraint = 19
)

// judgeSQLite goes by the result code. go-sqlite3 keeps it in a field that only
// an import could read, so there the text of the message has to do.
func judgeSQLite(err error) verdict {
	var result interface{ Code() int }
	if errors.As(err, &result) {
		switch result.Code() & 0xff {
		case sqliteBusy, sqliteLocked:
			return repeat
		case sqliteInterrupt, sqliteIOErr:
			return unclear
		case sqliteConstraint:
			return exists
		}
		return undone
	}
	if text := err.Error(); strings.Contains(text, "database is locked") || strings.Contains(text, "table is locked") {
		return repeat
	}
	return unclear
}
