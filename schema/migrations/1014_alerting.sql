-- Repeats of events by the second in which they arrived, which alert rules count; event_occurrences has them by their own
-- time. Sorted by arrival: a rule asks for the seconds since it was evaluated last. Corrections add nothing to an event's
-- sum. Two days are kept: the longest window of a rule and an outage
-- before its evaluation are shorter together.
-- shard: view
CREATE TABLE IF NOT EXISTS repeat_arrivals
(
    arrived DateTime('UTC') CODEC(Delta, ZSTD(1)),
    id UInt64 CODEC(Delta, T64('bit'), ZSTD(1)),
    source LowCardinality(String) CODEC(ZSTD(1)),
    n Int64 CODEC(T64('bit'), ZSTD(1))
)
ENGINE = {{engine:SummingMergeTree(n)}}
PARTITION BY toDate(arrived)
ORDER BY (arrived, id, source)
TTL arrived + INTERVAL 2 DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 10000;

CREATE MATERIALIZED VIEW IF NOT EXISTS repeat_arrivals_mv TO repeat_arrivals
(
    arrived DateTime('UTC'),
    id UInt64,
    source LowCardinality(String),
    n Int64
)
AS SELECT toDateTime(received_at, 'UTC') AS arrived, id, source, sum(landing.n) AS n
FROM landing
WHERE NOT is_new
GROUP BY arrived, id, source;

-- What alert rules decided: the transitions of their groups. Sorted by rule, group and number: the history of a rule and the
-- last transition of each group are ranges of the key. A transition that two instances decided has one key. An insert
-- goes to one partition, so that it is stored whole or not at all.
-- shard: home
CREATE TABLE IF NOT EXISTS alert_log
(
    rule_id String,
    group_key String,
    seq UInt64,
    id String,
    at DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    stored_at DateTime('UTC') CODEC(Delta, ZSTD(1)),
    doc String CODEC(ZSTD(3))
)
ENGINE = {{engine:ReplacingMergeTree}}
PARTITION BY toYYYYMM(stored_at)
ORDER BY (rule_id, group_key, seq, id)
TTL stored_at + INTERVAL 400 DAY
SETTINGS non_replicated_deduplication_window = 1000, fsync_after_insert = 1, fsync_part_directory = 1;
