-- The newest migration that was applied to the database.
-- params: none
-- rows:   version UInt32
SELECT max(version) AS version FROM schema_migrations
