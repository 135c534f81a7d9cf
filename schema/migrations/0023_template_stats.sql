-- Occurrences per template and hour. Sorted by time: what all templates did in the last day is one range,
-- and is asked for every second; the history of one template reads the column of ids.
-- events, routine (those below P1), unsure (those of them whose confidence is under a half) and
-- confidence_sum are of new events, the other counters of occurrences. Events below P1 only, so that no
-- flood of P1 can make the rest look better.
-- shard: view
CREATE TABLE IF NOT EXISTS template_stats
(
    arrival Date CODEC(ZSTD(1)),
    t DateTime('UTC') CODEC(Delta, ZSTD(1)),
    source LowCardinality(String) CODEC(ZSTD(1)),
    template_id UInt64 CODEC(ZSTD(1)),
    events SimpleAggregateFunction(sum, Int64) CODEC(T64, ZSTD(1)),
    routine SimpleAggregateFunction(sum, Int64) CODEC(T64, ZSTD(1)),
    unsure SimpleAggregateFunction(sum, Int64) CODEC(T64, ZSTD(1)),
    confidence_sum SimpleAggregateFunction(sum, Float64) CODEC(ZSTD(1)),
    model_version SimpleAggregateFunction(max, String) CODEC(ZSTD(1)),
    debug SimpleAggregateFunction(sum, Int64) CODEC(T64, ZSTD(1)),
    info SimpleAggregateFunction(sum, Int64) CODEC(T64, ZSTD(1)),
    warning SimpleAggregateFunction(sum, Int64) CODEC(T64, ZSTD(1)),
    error SimpleAggregateFunction(sum, Int64) CODEC(T64, ZSTD(1)),
    critical SimpleAggregateFunction(sum, Int64) CODEC(T64, ZSTD(1)),
    p1 SimpleAggregateFunction(sum, Int64) CODEC(T64, ZSTD(1)),
    p2 SimpleAggregateFunction(sum, Int64) CODEC(T64, ZSTD(1)),
    p3 SimpleAggregateFunction(sum, Int64) CODEC(T64, ZSTD(1)),
    p4 SimpleAggregateFunction(sum, Int64) CODEC(T64, ZSTD(1)),
    first_ts SimpleAggregateFunction(min, DateTime64(3, 'UTC')) CODEC(Delta, ZSTD(1)),
    last_ts SimpleAggregateFunction(max, DateTime64(3, 'UTC')) CODEC(Delta, ZSTD(1))
)
ENGINE = {{engine:AggregatingMergeTree}}
PARTITION BY arrival
ORDER BY (t, template_id, source, arrival)
TTL arrival + INTERVAL {{rollup_days}} DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 10000,
    fsync_after_insert = 1, fsync_part_directory = 1
