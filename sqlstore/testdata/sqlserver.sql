-- schema
IF OBJECT_ID(N'[app].[leases]', N'U') IS NULL
CREATE TABLE [app].[leases] (
  name       nvarchar(255) COLLATE Latin1_General_100_BIN2 NOT NULL PRIMARY KEY, -- compared exactly
  owner      nvarchar(255) COLLATE Latin1_General_100_BIN2 NOT NULL,             -- '' when released
  token      bigint NOT NULL,                                                    -- of the last grant; stays after release
  ttl        bigint NOT NULL,                                                    -- asked for, in milliseconds
  expires    bigint NOT NULL,                                                    -- UTC milliseconds, by the database's clock
  data_token bigint NOT NULL,                                                    -- the token that wrote data; 0 when there is none
  data       varbinary(max) NULL,                                                -- kept by Put
  updated    bigint NOT NULL                                                     -- UTC milliseconds of the last change
);

-- schema
IF OBJECT_ID(N'[app].[leases_tokens]', N'U') IS NULL
CREATE TABLE [app].[leases_tokens] (
  id    int NOT NULL PRIMARY KEY CHECK (id = 1),
  token bigint NOT NULL -- the last one granted, of all names
);

-- schema
INSERT INTO [app].[leases_tokens] (id, token)
SELECT 1, COALESCE(MAX(token), 0) FROM [app].[leases]
HAVING NOT EXISTS (SELECT 1 FROM [app].[leases_tokens] WHERE id = 1);

-- probe
SELECT token, (SELECT COUNT(*) FROM [app].[leases] WHERE name = N'') FROM [app].[leases_tokens] WHERE id = 1;

-- read
SELECT owner, token, ttl, expires, DATEDIFF_BIG(millisecond, '1970-01-01T00:00:00', SYSUTCDATETIME()) FROM [app].[leases] WHERE name = @p1;

-- get
SELECT owner, token, ttl, expires, DATEDIFF_BIG(millisecond, '1970-01-01T00:00:00', SYSUTCDATETIME()), data_token, data FROM [app].[leases] WHERE name = @p1;

-- list
SELECT name, owner, token, ttl, expires, DATEDIFF_BIG(millisecond, '1970-01-01T00:00:00', SYSUTCDATETIME()), data_token, data FROM [app].[leases]
WHERE name LIKE @p1 ESCAPE N'\'
  AND (data_token > 0 OR owner <> N'' AND expires > DATEDIFF_BIG(millisecond, '1970-01-01T00:00:00', SYSUTCDATETIME()))
ORDER BY name;

-- create
INSERT INTO [app].[leases] (name, owner, token, ttl, expires, data_token, updated)
SELECT @p1, N'', 0, 0, 0, 0, DATEDIFF_BIG(millisecond, '1970-01-01T00:00:00', SYSUTCDATETIME()) WHERE NOT EXISTS (SELECT 1 FROM [app].[leases] WHERE name = @p1);

-- acquire
SET NOCOUNT ON;
SET XACT_ABORT ON;
DECLARE @now bigint, @token bigint, @done int;
BEGIN TRANSACTION;
SELECT @token = token FROM [app].[leases] WITH (UPDLOCK, ROWLOCK) WHERE name = @p1;
SET @now = DATEDIFF_BIG(millisecond, '1970-01-01T00:00:00', SYSUTCDATETIME());

IF EXISTS (SELECT 1 FROM [app].[leases] WHERE name = @p1 AND token = @p3 AND (owner = N'' OR expires <= @now))
BEGIN
  SET @token = NULL;
  UPDATE [app].[leases_tokens] SET @token = token = CASE WHEN token > @p3 THEN token ELSE @p3 END + 1 WHERE id = 1;
END;
UPDATE [app].[leases] SET
  owner   = @p2,
  token   = @token,
  ttl     = CASE WHEN @now + @p5 >= expires THEN @p4 ELSE ttl END,
  expires = CASE WHEN @now + @p5 >= expires THEN @now + @p5 ELSE expires END,
  updated = @now
WHERE name = @p1 AND token = @p3 AND (owner = N'' OR owner = @p2 OR expires <= @now);
SET @done = @@ROWCOUNT;
COMMIT TRANSACTION;
SELECT @token WHERE @done = 1;

-- renew
SET NOCOUNT ON;
SET XACT_ABORT ON;
DECLARE @now bigint, @token bigint, @done int;
BEGIN TRANSACTION;
SELECT @token = token FROM [app].[leases] WITH (UPDLOCK, ROWLOCK) WHERE name = @p1;
SET @now = DATEDIFF_BIG(millisecond, '1970-01-01T00:00:00', SYSUTCDATETIME());

UPDATE [app].[leases] SET
  ttl     = CASE WHEN @now + @p5 >= expires THEN @p4 ELSE ttl END,
  expires = CASE WHEN @now + @p5 >= expires THEN @now + @p5 ELSE expires END,
  updated = @now
WHERE name = @p1 AND owner = @p2 AND token = @p3 AND expires > @now;
SET @done = @@ROWCOUNT;
COMMIT TRANSACTION;
SELECT @token WHERE @done = 1;

-- release
UPDATE [app].[leases] SET owner = N'', ttl = 0, expires = 0, updated = DATEDIFF_BIG(millisecond, '1970-01-01T00:00:00', SYSUTCDATETIME())
OUTPUT inserted.token WHERE name = @p1 AND owner = @p2 AND token = @p3;

-- put
SET NOCOUNT ON;
SET XACT_ABORT ON;
DECLARE @now bigint, @token bigint, @done int;
BEGIN TRANSACTION;
SELECT @token = token FROM [app].[leases] WITH (UPDLOCK, ROWLOCK) WHERE name = @p1;
SET @now = DATEDIFF_BIG(millisecond, '1970-01-01T00:00:00', SYSUTCDATETIME());

UPDATE [app].[leases] SET data = @p4, data_token = @p5, updated = @now
WHERE name = @p1 AND owner = @p2 AND token = @p3 AND expires > @now;
SET @done = @@ROWCOUNT;
COMMIT TRANSACTION;
SELECT @token WHERE @done = 1;

-- check
SET NOCOUNT ON;
DECLARE @owner nvarchar(255), @token bigint, @ttl bigint, @expires bigint;
SELECT @owner = owner, @token = token, @ttl = ttl, @expires = expires
FROM [app].[leases] WITH (UPDLOCK, ROWLOCK) WHERE name = @p1;
SELECT @owner, @token, @ttl, @expires, DATEDIFF_BIG(millisecond, '1970-01-01T00:00:00', SYSUTCDATETIME()) WHERE @token IS NOT NULL;

