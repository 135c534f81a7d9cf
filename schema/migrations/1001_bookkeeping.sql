-- What was done to this database. Every program makes these two tables at each start, before it reads them.
-- Sorted by the name under which a row is looked up; the newest row of a name replaces the others.

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
