-- Which migrations this database has had. Repeated rows (two instances starting at once) collapse.
-- shard: none
CREATE TABLE IF NOT EXISTS schema_migrations
(
    version UInt32,
    name String,
    applied_at DateTime64(3, 'UTC') DEFAULT now64(3)
)
ENGINE = {{engine:ReplacingMergeTree(applied_at)}}
ORDER BY version
