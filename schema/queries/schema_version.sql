-- The newest migration the database has had.
-- params: none
-- rows:   version UInt32
SELECT max(version) AS version FROM schema_migrations
