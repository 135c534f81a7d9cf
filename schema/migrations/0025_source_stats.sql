-- Totals per source: events, occurrences, first and last event time. A handful of rows, read whole.
CREATE TABLE IF NOT EXISTS source_stats
(
    arrival Date,
    source LowCardinality(String),
    events SimpleAggregateFunction(sum, Int64),
    occurrences SimpleAggregateFunction(sum, Int64),
    errors SimpleAggregateFunction(sum, Int64),
    first_ts SimpleAggregateFunction(min, DateTime64(3, 'UTC')),
    last_ts SimpleAggregateFunction(max, DateTime64(3, 'UTC'))
)
ENGINE = {{engine:AggregatingMergeTree}}
PARTITION BY arrival
ORDER BY (source, arrival)
TTL arrival + INTERVAL {{rollup_days}} DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 10000,
    fsync_after_insert = 1, fsync_part_directory = 1
