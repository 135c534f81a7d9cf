-- The migrations and settings applied to this database. Each start creates these two tables before it reads them.
-- Sorted by name; the newest row of a name replaces the others.

-- The migrations that were applied. Two instances that start at once may each write a row of a migration.
-- shard: none
CREATE TABLE IF NOT EXISTS schema_migrations
(
    version UInt32,
    name String,
    applied_at DateTime64(3, 'UTC') DEFAULT now64(3)
)
ENGINE = {{engine:ReplacingMergeTree(applied_at)}}
ORDER BY version;

-- Settings of the program that are part of table definitions, as they were last applied.
-- shard: none
CREATE TABLE IF NOT EXISTS applied_settings
(
    name String,
    value String,
    applied_at DateTime64(3, 'UTC') DEFAULT now64(3)
)
ENGINE = {{engine:ReplacingMergeTree(applied_at)}}
ORDER BY name;
