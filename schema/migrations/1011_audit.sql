-- The audit trail: actor, action, target and address. Sorted by time: the keyset of the list, newest first.
-- Rows are never changed; clear-all does not delete them, only their TTL does.
-- shard: home
CREATE TABLE IF NOT EXISTS audit
(
    seq UInt64 CODEC(Delta, ZSTD(1)),
    id String,
    at DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    actor_id LowCardinality(String),
    action LowCardinality(String),
    target String CODEC(ZSTD(1)),
    outcome LowCardinality(String),
    ip LowCardinality(String),
    detail String CODEC(ZSTD(1))
)
ENGINE = {{engine:MergeTree}}
PARTITION BY toYYYYMM(at)
ORDER BY (seq, id)
TTL toDateTime(at) + INTERVAL 400 DAY
SETTINGS non_replicated_deduplication_window = 1000, fsync_after_insert = 1, fsync_part_directory = 1;
