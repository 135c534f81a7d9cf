-- Repeats of an event beyond its first row, by second and by the priority they were counted under, so that
-- a correction moves exactly what was counted. Sorted by id: read for the ids of one page. Partitioned as events are.
-- shard: view
CREATE TABLE IF NOT EXISTS event_occurrences
(
    arrival Date CODEC(ZSTD(1)),
    kept_days UInt16 CODEC(ZSTD(1)),
    id UInt64 CODEC(Delta, T64('bit'), ZSTD(1)),
    t DateTime('UTC') CODEC(Delta, T64('bit'), ZSTD(1)),
    priority Enum8('P1' = 0, 'P2' = 1, 'P3' = 2, 'P4' = 3) CODEC(T64('bit'), ZSTD(1)),
    source LowCardinality(String) CODEC(ZSTD(1)),
    n SimpleAggregateFunction(sum, Int64) CODEC(T64('bit'), ZSTD(1)),
    last_ts SimpleAggregateFunction(max, DateTime64(3, 'UTC')) CODEC(Delta, T64('bit'), ZSTD(1))
)
ENGINE = {{engine:AggregatingMergeTree}}
PARTITION BY (arrival, kept_days)
ORDER BY (id, t, priority, source, arrival, kept_days)
SETTINGS non_replicated_deduplication_window = 10000,
    fsync_after_insert = 1, fsync_part_directory = 1;

CREATE MATERIALIZED VIEW IF NOT EXISTS event_occurrences_mv TO event_occurrences
(
    arrival Date,
    kept_days UInt16,
    id UInt64,
    t DateTime('UTC'),
    priority Enum8('P1' = 0, 'P2' = 1, 'P3' = 2, 'P4' = 3),
    source LowCardinality(String),
    n Int64,
    last_ts DateTime64(3, 'UTC')
)
AS SELECT toDate(received_at) AS arrival, kept_days, id, toDateTime(ts, 'UTC') AS t, priority, source, sum(landing.n) AS n, max(ts) AS last_ts
FROM landing
WHERE NOT is_new
GROUP BY arrival, kept_days, id, t, priority, source;
