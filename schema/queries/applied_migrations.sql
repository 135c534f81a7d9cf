-- The migrations that were applied to this database.
-- params: none
-- rows:   version UInt32
SELECT DISTINCT version
FROM schema_migrations
ORDER BY version
