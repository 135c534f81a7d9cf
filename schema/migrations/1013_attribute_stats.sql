-- The attributes of each source by day of their events: in how many occurrences they are, the kinds of their values (bits: 1 text,
-- 2 truth value, 4 number) and some values. Sorted by source: most questions name one.
--
-- Of each block the 500 most frequent attribute_names of a source count, and 2,000 in all; the occurrences of the others count
-- under the name ''. Kinds and examples are sampled: from one event for each list of names in a block.
-- shard: view
CREATE TABLE IF NOT EXISTS attribute_stats
(
    arrival Date CODEC(ZSTD(1)),
    day Date CODEC(Delta, ZSTD(1)),
    source LowCardinality(String) CODEC(ZSTD(1)),
    name String CODEC(ZSTD(1)),
    n SimpleAggregateFunction(sum, Int64) CODEC(T64, ZSTD(1)),
    kinds SimpleAggregateFunction(groupBitOr, UInt8) CODEC(ZSTD(1)),
    examples SimpleAggregateFunction(groupUniqArrayArray(5), Array(String)) CODEC(ZSTD(1))
)
ENGINE = {{engine:AggregatingMergeTree}}
PARTITION BY arrival
ORDER BY (source, name, day, arrival)
TTL arrival + INTERVAL {{rollup_days}} DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 10000,
    fsync_after_insert = 1, fsync_part_directory = 1;

-- Names are grouped by their hashes, as in series_1s_mv. Few rows are left before they are split into attributes.
CREATE MATERIALIZED VIEW IF NOT EXISTS attribute_stats_mv TO attribute_stats
(
    arrival Date,
    day Date,
    source String,
    name String,
    n Int64,
    kinds UInt8,
    examples Array(String)
)
AS SELECT
    arrival, day, source, names[at] AS name,
    sum(if(indexOf(names, name) = at, counted, 0)) AS n,
    groupBitOr(multiIf(startsWith(values[at], '"'), 1, match(values[at], '^[tf]'), 2, notEmpty(name), 4, 0)) AS kinds,
    groupUniqArrayIf(5)(leftUTF8(values[at], 100), notEmpty(name)) AS examples
FROM (
    SELECT
        arrival, day, source, counted,
        row_number() OVER (PARTITION BY source ORDER BY counted DESC, all_names) <= 500
            AND row_number() OVER (ORDER BY counted DESC, all_names) <= 2000 AS is_kept,
        if(is_kept, splitByChar('\x01', all_names), ['']) AS names,
        if(is_kept, splitByChar('\x01', all_values), ['']) AS values
    FROM (
        SELECT
            toStartOfMonth(received_at) AS arrival,
            toDate(ts) AS day,
            any(landing.source) AS source,
            any(toString(attribute_names)) AS all_names,
            any(attribute_values) AS all_values,
            sum(landing.n) AS counted
        FROM landing
        WHERE notEmpty(attribute_names)
        GROUP BY arrival, day, sipHash64(landing.source), sipHash64(attribute_names)
    )
)
ARRAY JOIN arrayEnumerate(names) AS at
GROUP BY arrival, day, source, name;
