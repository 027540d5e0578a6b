package sqlstore

import (
	"errors"
	"strings"
)

// Postgres is PostgreSQL 12 and later, and what speaks its language and keeps
// row locks as it does. The database's encoding has to be UTF8. Tested with
// github.com/jackc/pgx/v5; github.com/lib/pq works too.
//
// Locks: a grant to another owner excludes Store.Check, but a renewal does not,
// so a transaction that holds its lease by Check keeps no renewal waiting.
var Postgres = Dialect{
	name:       "postgres",
	quote:      func(s string) string { return `"` + s + `"` },
	statements: postgresStatements,
	judge:      judgePostgres,
	prefix:     between,
}

// clock_timestamp is the time of its own evaluation. now() would be that of the
// transaction's start, and statement_timestamp() is before the row was locked.
const postgresClock = `floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint`

// The free half of every page lets a row be updated in place (HOT): no index
// covers a column that changes.
const postgresLeases = `
CREATE TABLE IF NOT EXISTS {leases} (
  name       text COLLATE "C" NOT NULL PRIMARY KEY, -- compared byte by byte
  owner      text COLLATE "C" NOT NULL,             -- '' when released
  token      bigint NOT NULL,                       -- of the last grant; stays after release
  ttl        bigint NOT NULL,                       -- asked for, in milliseconds
  expires    bigint NOT NULL,                       -- UTC milliseconds, by the database's clock
  data_token bigint NOT NULL,                       -- the token that wrote data; 0 when there is none
  data       bytea,                                 -- kept by Put
  updated    bigint NOT NULL                        -- UTC milliseconds of the last change
) WITH (fillfactor = 50)`

const postgresTokens = `
CREATE TABLE IF NOT EXISTS {tokens} (
  id    integer NOT NULL PRIMARY KEY CHECK (id = 1),
  token bigint NOT NULL -- the last one granted, of all names
) WITH (fillfactor = 50)`

const postgresFirstToken = `
INSERT INTO {tokens} (id, token)
SELECT 1, coalesce(max(token), 0) FROM {leases}
ON CONFLICT (id) DO NOTHING`

// The update of a row that was locked and not changed while this statement
// waited uses what was computed before the wait. So each statement locks the row
// in a step of its own, {lock}, and reads the clock in the next.
const postgresLocked = `
WITH l AS MATERIALIZED (
  SELECT name, owner, token, ttl, expires FROM {leases} WHERE name = $1::text FOR {lock}
), n AS MATERIALIZED (
  SELECT l.*, {clock} AS now FROM l
)`

// A record whose token is not the one last seen has had another grant since:
// that this statement arrives late then changes nothing.
const postgresAcquire = postgresLocked + `, d AS MATERIALIZED (
  SELECT n.*, n.owner = '' OR n.expires <= n.now AS free
  FROM n WHERE n.token = $3::bigint AND (n.owner = '' OR n.owner = $2::text OR n.expires <= n.now)
), t AS (
  UPDATE {tokens} SET token = greatest(token, $3::bigint) + 1
  WHERE EXISTS (SELECT 1 FROM d WHERE free) RETURNING token
)
UPDATE {leases} AS r SET
  owner   = $2::text,
  token   = CASE WHEN d.free THEN (SELECT token FROM t) ELSE d.token END,
  ttl     = CASE WHEN d.now + $5::bigint >= d.expires THEN $4::bigint ELSE d.ttl END,
  expires = greatest(d.expires, d.now + $5::bigint),
  updated = d.now
FROM d WHERE r.name = d.name
RETURNING r.token`

const postgresRenew = postgresLocked + `
UPDATE {leases} AS r SET
  ttl     = CASE WHEN n.now + $5::bigint >= n.expires THEN $4::bigint ELSE n.ttl END,
  expires = greatest(n.expires, n.now + $5::bigint),
  updated = n.now
FROM n WHERE r.name = n.name AND n.owner = $2::text AND n.token = $3::bigint AND n.expires > n.now
RETURNING r.token`

const postgresPut = postgresLocked + `
UPDATE {leases} AS r SET data = $4::bytea, data_token = $5::bigint, updated = n.now
FROM n WHERE r.name = n.name AND n.owner = $2::text AND n.token = $3::bigint AND n.expires > n.now
RETURNING r.token`

func postgresStatements(t table) statements {
	text := func(s, lock string) string { return fill(s, t, "{clock}", postgresClock, "{lock}", lock) }
	const row = `owner, token, ttl, expires, {clock}`
	return statements{
		schema: []string{text(postgresLeases, ""), text(postgresTokens, ""), text(postgresFirstToken, "")},
		probe:  text(`SELECT token, (SELECT count(*) FROM {leases} WHERE name = '') FROM {tokens} WHERE id = 1`, ""),

		read: text(`SELECT `+row+` FROM {leases} WHERE name = $1::text`, ""),
		get:  text(`SELECT `+row+`, data_token, data FROM {leases} WHERE name = $1::text`, ""),
		list: text(`SELECT name, `+row+`, data_token, data FROM {leases}
WHERE name >= $1::text AND ($2::text = '' OR name < $2::text)
  AND (data_token > 0 OR owner <> '' AND expires > {clock})
ORDER BY name`, ""),
		create: text(`INSERT INTO {leases} (name, owner, token, ttl, expires, data_token, updated)
VALUES ($1::text, '', 0, 0, 0, 0, {clock}) ON CONFLICT (name) DO NOTHING`, ""),
		// FOR UPDATE waits for FOR KEY SHARE of a check, FOR NO KEY UPDATE does not.
		acquire: text(postgresAcquire, "UPDATE"),
		renew:   text(postgresRenew, "NO KEY UPDATE"),
		put:     text(postgresPut, "NO KEY UPDATE"),
		release: text(`UPDATE {leases} SET owner = '', ttl = 0, expires = 0, updated = {clock}
WHERE name = $1::text AND owner = $2::text AND token = $3::bigint RETURNING token`, ""),
		check: text(`SELECT `+row+` FROM (
  SELECT owner, token, ttl, expires FROM {leases} WHERE name = $1::text FOR KEY SHARE
) AS l`, ""),
	}
}

// judgePostgres goes by SQLSTATE, which pgx and lib/pq both tell.
func judgePostgres(err error) verdict {
	var state interface{ SQLState() string }
	if !errors.As(err, &state) {
		return unclear
	}
	switch code := state.SQLState(); {
	case code == "40001", code == "40P01", code == "55P03": // serialisation, dead-lock, lock not available
		return repeat
	case code == "23505", code == "42P07", code == "42710": // unique violation, duplicate table or object
		return exists
	case code == "40003", strings.HasPrefix(code, "08"), strings.HasPrefix(code, "57P"), // connection, shutdown
		strings.HasPrefix(code, "58"), strings.HasPrefix(code, "XX"), code == "": // system, internal
		return unclear
	}
	return undone
}
