-- Attempts to send notices of alert rules. Sorted by notice and attempt: how a notice went is one range of the key. The
-- receipt is what the receiver calls its message; with it, later messages about the alert find the first one.
-- shard: home
CREATE TABLE IF NOT EXISTS alert_deliveries
(
    notice_id String,
    attempt UInt32,
    at DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    channel_id String,
    alert_id String,
    outcome LowCardinality(String),
    status UInt16,
    latency_ms UInt32,
    error LowCardinality(String),
    receipt String,
    INDEX alert_id_index alert_id TYPE bloom_filter(0.001) GRANULARITY 1
)
ENGINE = {{engine:MergeTree}}
PARTITION BY toYYYYMM(at)
ORDER BY (notice_id, attempt)
TTL toDateTime(at) + INTERVAL 400 DAY
SETTINGS non_replicated_deduplication_window = 1000;
