-- Settings that are part of table definitions, as they were last applied. The newest row of a name counts.
-- shard: none
CREATE TABLE IF NOT EXISTS applied_settings
(
    name String,
    value String,
    applied_at DateTime64(3, 'UTC') DEFAULT now64(3)
)
ENGINE = {{engine:ReplacingMergeTree(applied_at)}}
ORDER BY name
