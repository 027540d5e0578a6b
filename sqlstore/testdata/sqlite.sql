-- schema
CREATE TABLE IF NOT EXISTS "app"."leases" (
  name       TEXT NOT NULL PRIMARY KEY COLLATE BINARY, -- compared byte by byte
  owner      TEXT NOT NULL COLLATE BINARY,             -- '' when released
  token      INTEGER NOT NULL,                         -- of the last grant; stays after release
  ttl        INTEGER NOT NULL,                         -- asked for, in milliseconds
  expires    INTEGER NOT NULL,                         -- UTC milliseconds
  data_token INTEGER NOT NULL,                         -- the token that wrote data; 0 when there is none
  data       BLOB,                                     -- kept by Put
  updated    INTEGER NOT NULL                          -- UTC milliseconds of the last change
);

-- schema
CREATE TABLE IF NOT EXISTS "app"."leases_tokens" (
  id    INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
  token INTEGER NOT NULL -- the last one granted, of all names
);

-- schema
CREATE TRIGGER IF NOT EXISTS "app"."leases_token_kept" AFTER UPDATE OF token ON "leases"
WHEN new.token > old.token
BEGIN
  UPDATE "leases_tokens" SET token = new.token WHERE token < new.token;
END;

-- schema
INSERT INTO "app"."leases_tokens" (id, token)
SELECT 1, coalesce(max(token), 0) FROM "app"."leases" WHERE true
ON CONFLICT (id) DO NOTHING;

-- probe
SELECT token, (SELECT count(*) FROM "app"."leases" WHERE name = '') FROM "app"."leases_tokens" WHERE id = 1;

-- read
SELECT owner, token, ttl, expires, CAST(round((julianday('now') - 2440587.5) * 86400000.0) AS INTEGER) FROM "app"."leases" WHERE name = ?1;

-- get
SELECT owner, token, ttl, expires, CAST(round((julianday('now') - 2440587.5) * 86400000.0) AS INTEGER), data_token, data FROM "app"."leases" WHERE name = ?1;

-- list
SELECT name, owner, token, ttl, expires, CAST(round((julianday('now') - 2440587.5) * 86400000.0) AS INTEGER), data_token, data FROM "app"."leases"
WHERE name >= ?1 AND (?2 = '' OR name < ?2)
  AND (data_token > 0 OR owner <> '' AND expires > CAST(round((julianday('now') - 2440587.5) * 86400000.0) AS INTEGER))
ORDER BY name;

-- create
INSERT INTO "app"."leases" (name, owner, token, ttl, expires, data_token, updated)
VALUES (?1, '', 0, 0, 0, 0, CAST(round((julianday('now') - 2440587.5) * 86400000.0) AS INTEGER)) ON CONFLICT (name) DO NOTHING;

-- acquire
UPDATE "app"."leases" SET
  owner   = ?2,
  token   = CASE WHEN owner = '' OR expires <= CAST(round((julianday('now') - 2440587.5) * 86400000.0) AS INTEGER)
            THEN max(?3, (SELECT token FROM "app"."leases_tokens" WHERE id = 1)) + 1 ELSE token END,
  ttl     = CASE WHEN CAST(round((julianday('now') - 2440587.5) * 86400000.0) AS INTEGER) + ?5 >= expires THEN ?4 ELSE ttl END,
  expires = max(expires, CAST(round((julianday('now') - 2440587.5) * 86400000.0) AS INTEGER) + ?5),
  updated = CAST(round((julianday('now') - 2440587.5) * 86400000.0) AS INTEGER)
WHERE name = ?1 AND token = ?3 AND (owner = '' OR owner = ?2 OR expires <= CAST(round((julianday('now') - 2440587.5) * 86400000.0) AS INTEGER))
RETURNING token;

-- renew
UPDATE "app"."leases" SET
  ttl     = CASE WHEN CAST(round((julianday('now') - 2440587.5) * 86400000.0) AS INTEGER) + ?5 >= expires THEN ?4 ELSE ttl END,
  expires = max(expires, CAST(round((julianday('now') - 2440587.5) * 86400000.0) AS INTEGER) + ?5),
  updated = CAST(round((julianday('now') - 2440587.5) * 86400000.0) AS INTEGER)
WHERE name = ?1 AND owner = ?2 AND token = ?3 AND expires > CAST(round((julianday('now') - 2440587.5) * 86400000.0) AS INTEGER)
RETURNING token;

-- release
UPDATE "app"."leases" SET owner = '', ttl = 0, expires = 0, updated = CAST(round((julianday('now') - 2440587.5) * 86400000.0) AS INTEGER)
WHERE name = ?1 AND owner = ?2 AND token = ?3 RETURNING token;

-- put
UPDATE "app"."leases" SET data = ?4, data_token = ?5, updated = CAST(round((julianday('now') - 2440587.5) * 86400000.0) AS INTEGER)
WHERE name = ?1 AND owner = ?2 AND token = ?3 AND expires > CAST(round((julianday('now') - 2440587.5) * 86400000.0) AS INTEGER)
RETURNING token;

-- check
UPDATE "app"."leases" SET updated = updated WHERE name = ?1 RETURNING owner, token, ttl, expires, CAST(round((julianday('now') - 2440587.5) * 86400000.0) AS INTEGER);

