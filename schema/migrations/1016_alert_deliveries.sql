-- Attempts to send notices of alert rules. Sorted by notice and attempt: how a notice went is one range of the key.
-- shard: home
CREATE TABLE IF NOT EXISTS alert_deliveries
(
    notice_id String,
    attempt UInt32,
    at DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    channel_id String,
    outcome LowCardinality(String),
    status UInt16,
    latency_ms UInt32,
    error LowCardinality(String)
)
ENGINE = {{engine:MergeTree}}
PARTITION BY toYYYYMM(at)
ORDER BY (notice_id, attempt)
TTL toDateTime(at) + INTERVAL 400 DAY
SETTINGS non_replicated_deduplication_window = 1000;
