-- Occurrences per minute and source; made from the seconds, so that the two always agree.
-- shard: view
CREATE TABLE IF NOT EXISTS series_1m
(
    arrival Date CODEC(ZSTD(1)),
    t DateTime('UTC') CODEC(Delta, ZSTD(1)),
    source LowCardinality(String) CODEC(ZSTD(1)),
    debug Int64 CODEC(T64, ZSTD(1)),
    info Int64 CODEC(T64, ZSTD(1)),
    warning Int64 CODEC(T64, ZSTD(1)),
    error Int64 CODEC(T64, ZSTD(1)),
    critical Int64 CODEC(T64, ZSTD(1)),
    p1 Int64 CODEC(T64, ZSTD(1)),
    p2 Int64 CODEC(T64, ZSTD(1)),
    p3 Int64 CODEC(T64, ZSTD(1)),
    p4 Int64 CODEC(T64, ZSTD(1))
)
ENGINE = {{engine:SummingMergeTree}}
PARTITION BY arrival
ORDER BY (t, source, arrival)
TTL arrival + INTERVAL {{rollup_days}} DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 10000,
    fsync_after_insert = 1, fsync_part_directory = 1
