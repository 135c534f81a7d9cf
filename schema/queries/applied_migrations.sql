-- The migrations this database has had.
-- params: none
-- rows:   version UInt32
SELECT DISTINCT version
FROM schema_migrations
ORDER BY version
