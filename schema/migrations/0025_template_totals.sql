-- Totals per template, made from its hours: the list of templates and, summed by source, the totals of the
-- sources. A few thousand rows, read whole. Sorted by source for those who ask for a few sources.
-- shard: view
CREATE TABLE IF NOT EXISTS template_totals
(
    arrival Date,
    source LowCardinality(String),
    template_id UInt64,
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
ORDER BY (source, template_id, arrival)
TTL arrival + INTERVAL {{rollup_days}} DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 10000,
    fsync_after_insert = 1, fsync_part_directory = 1
