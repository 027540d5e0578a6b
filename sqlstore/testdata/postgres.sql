-- schema
CREATE TABLE IF NOT EXISTS "app"."leases" (
  name       text COLLATE "C" NOT NULL PRIMARY KEY, -- compared byte by byte
  owner      text COLLATE "C" NOT NULL,             -- '' when released
  token      bigint NOT NULL,                       -- of the last grant; stays after release
  ttl        bigint NOT NULL,                       -- asked for, in milliseconds
  expires    bigint NOT NULL,                       -- UTC milliseconds, by the database's clock
  data_token bigint NOT NULL,                       -- the token that wrote data; 0 when there is none
  data       bytea,                                 -- kept by Put
  updated    bigint NOT NULL                        -- UTC milliseconds of the last change
) WITH (fillfactor = 50);

-- schema
CREATE TABLE IF NOT EXISTS "app"."leases_tokens" (
  id    integer NOT NULL PRIMARY KEY CHECK (id = 1),
  token bigint NOT NULL -- the last one granted, of all names
) WITH (fillfactor = 50);

-- schema
INSERT INTO "app"."leases_tokens" (id, token)
SELECT 1, coalesce(max(token), 0) FROM "app"."leases"
ON CONFLICT (id) DO NOTHING;

-- probe
SELECT token, (SELECT count(*) FROM "app"."leases" WHERE name = '') FROM "app"."leases_tokens" WHERE id = 1;

-- read
SELECT owner, token, ttl, expires, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint FROM "app"."leases" WHERE name = $1::text;

-- get
SELECT owner, token, ttl, expires, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint, data_token, data FROM "app"."leases" WHERE name = $1::text;

-- list
SELECT name, owner, token, ttl, expires, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint, data_token, data FROM "app"."leases"
WHERE name >= $1::text AND ($2::text = '' OR name < $2::text)
  AND (data_token > 0 OR owner <> '' AND expires > floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint)
ORDER BY name;

-- create
INSERT INTO "app"."leases" (name, owner, token, ttl, expires, data_token, updated)
VALUES ($1::text, '', 0, 0, 0, 0, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint) ON CONFLICT (name) DO NOTHING;

-- acquire
WITH l AS MATERIALIZED (
  SELECT name, owner, token, ttl, expires FROM "app"."leases" WHERE name = $1::text FOR UPDATE
), n AS MATERIALIZED (
  SELECT l.*, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now FROM l
), d AS MATERIALIZED (
  SELECT n.*, n.owner = '' OR n.expires <= n.now AS free
  FROM n WHERE n.token = $3::bigint AND (n.owner = '' OR n.owner = $2::text OR n.expires <= n.now)
), t AS (
  UPDATE "app"."leases_tokens" SET token = greatest(token, $3::bigint) + 1
  WHERE EXISTS (SELECT 1 FROM d WHERE free) RETURNING token
)
UPDATE "app"."leases" AS r SET
  owner   = $2::text,
  token   = CASE WHEN d.free THEN (SELECT token FROM t) ELSE d.token END,
  ttl     = CASE WHEN d.now + $5::bigint >= d.expires THEN $4::bigint ELSE d.ttl END,
  expires = greatest(d.expires, d.now + $5::bigint),
  updated = d.now
FROM d WHERE r.name = d.name
RETURNING r.token;

-- renew
WITH l AS MATERIALIZED (
  SELECT name, owner, token, ttl, expires FROM "app"."leases" WHERE name = $1::text FOR NO KEY UPDATE
), n AS MATERIALIZED (
  SELECT l.*, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now FROM l
)
UPDATE "app"."leases" AS r SET
  ttl     = CASE WHEN n.now + $5::bigint >= n.expires THEN $4::bigint ELSE n.ttl END,
  expires = greatest(n.expires, n.now + $5::bigint),
  updated = n.now
FROM n WHERE r.name = n.name AND n.owner = $2::text AND n.token = $3::bigint AND n.expires > n.now
RETURNING r.token;

-- release
UPDATE "app"."leases" SET owner = '', ttl = 0, expires = 0, updated = floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint
WHERE name = $1::text AND owner = $2::text AND token = $3::bigint RETURNING token;

-- put
WITH l AS MATERIALIZED (
  SELECT name, owner, token, ttl, expires FROM "app"."leases" WHERE name = $1::text FOR NO KEY UPDATE
), n AS MATERIALIZED (
  SELECT l.*, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now FROM l
)
UPDATE "app"."leases" AS r SET data = $4::bytea, data_token = $5::bigint, updated = n.now
FROM n WHERE r.name = n.name AND n.owner = $2::text AND n.token = $3::bigint AND n.expires > n.now
RETURNING r.token;

-- check
SELECT owner, token, ttl, expires, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint FROM (
  SELECT owner, token, ttl, expires FROM "app"."leases" WHERE name = $1::text FOR KEY SHARE
) AS l;

