-- Results of insight runs, one snapshot for each hour that was analysed: the last one computed stays.
-- Sorted by that hour: the snapshot of a time is the last at or before it.
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
SETTINGS non_replicated_deduplication_window = 1000;

-- Anomalies in their last state. Sorted by their beginning, which never moves, then id: the keyset of the list,
-- newest first. alerted_at is 0 until an alert was raised.
-- shard: home
CREATE TABLE IF NOT EXISTS insight_anomalies
(
    started_at DateTime('UTC') CODEC(Delta, ZSTD(1)),
    id String,
    version UInt64,
    ended_at DateTime('UTC'),
    detected_at DateTime('UTC'),
    state LowCardinality(String),
    scope LowCardinality(String),
    kind LowCardinality(String),
    source LowCardinality(String),
    severity LowCardinality(String),
    template_id String,
    observed Float64,
    expected Float64,
    expected_least Float64,
    expected_most Float64,
    score Float64,
    part_of String,
    alerted_at DateTime64(3, 'UTC') DEFAULT 0
)
ENGINE = {{engine:ReplacingMergeTree(version)}}
ORDER BY (started_at, id)
TTL toDateTime(intDiv(version, 1000000)) + INTERVAL 400 DAY
SETTINGS non_replicated_deduplication_window = 1000;
