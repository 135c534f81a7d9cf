-- Small records that are read whole into memory: users, sources, applications, alerts, incidents, tasks,
-- ingest keys, corrected priorities, settings. Sorted by kind and id: one record is one range of the key,
-- and its newest version replaces the others. updated_at moves with each version.
-- shard: home by kind
CREATE TABLE IF NOT EXISTS entities
(
    kind LowCardinality(String),
    id String,
    version UInt64,
    is_deleted UInt8,
    doc String CODEC(ZSTD(1)),
    updated_at DateTime64(3, 'UTC') DEFAULT now64(3)
)
ENGINE = {{engine:ReplacingMergeTree(version, is_deleted)}}
ORDER BY (kind, id)
SETTINGS non_replicated_deduplication_window = 1000, fsync_after_insert = 1, fsync_part_directory = 1;
