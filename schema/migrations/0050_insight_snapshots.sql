-- What the insight engine told, one snapshot for each hour it looked back from: the last one computed stays.
-- Sorted by that hour: the one of a moment is the last at or before it.
-- shard: home
CREATE TABLE IF NOT EXISTS insight_snapshots
(
    as_of DateTime('UTC') CODEC(Delta, ZSTD(1)),
    generated_at DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    doc String CODEC(ZSTD(3))
)
ENGINE = {{engine:ReplacingMergeTree(generated_at)}}
ORDER BY as_of
TTL toDateTime(generated_at) + INTERVAL 400 DAY
SETTINGS non_replicated_deduplication_window = 1000
