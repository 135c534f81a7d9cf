-- One row per event. Partitioned by arrival so that an insert touches one partition whatever times it
-- carries and retention drops whole partitions. Sorted by event time, then id: pages newest-first read in
-- order and the keyset (ts, id) is a range of the sort key.
-- auto_priority keeps what the event's first occurrences were counted under, for corrections.
-- shard: view
CREATE TABLE IF NOT EXISTS events
(
    id UInt64 CODEC(Delta, ZSTD(1)),
    n Int32 CODEC(T64, ZSTD(1)),
    received_at DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    ts DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    source LowCardinality(String) CODEC(ZSTD(1)),
    type Enum8('log' = 0, 'metric' = 1, 'trace' = 2, 'event' = 3) CODEC(ZSTD(1)),
    severity Enum8('DEBUG' = 0, 'INFO' = 1, 'WARNING' = 2, 'ERROR' = 3, 'CRITICAL' = 4) CODEC(ZSTD(1)),
    priority Enum8('P1' = 0, 'P2' = 1, 'P3' = 2, 'P4' = 3) CODEC(ZSTD(1)),
    auto_priority Enum8('P1' = 0, 'P2' = 1, 'P3' = 2, 'P4' = 3) CODEC(ZSTD(1)),
    priority_source Enum8('auto' = 0, 'template' = 1, 'manual' = 2) CODEC(ZSTD(1)),
    confidence Float32 CODEC(ZSTD(1)),
    model_version LowCardinality(String) CODEC(ZSTD(1)),
    template_id UInt64 CODEC(ZSTD(1)),
    host LowCardinality(String) CODEC(ZSTD(1)),
    environment LowCardinality(String) CODEC(ZSTD(1)),
    trace_id String CODEC(ZSTD(1)),
    span_id String CODEC(ZSTD(1)),
    message String CODEC(ZSTD(1)),
    search_words String CODEC(ZSTD(1)),
    summary String CODEC(ZSTD(1)),
    tags String CODEC(ZSTD(1)),
    dedup_key String CODEC(ZSTD(1)),
    correction_reason String DEFAULT '' CODEC(ZSTD(1)),
    INDEX by_id id TYPE minmax GRANULARITY 1,
    INDEX by_source source TYPE set(256) GRANULARITY 1,
    INDEX by_severity severity TYPE set(8) GRANULARITY 1,
    INDEX by_priority priority TYPE set(8) GRANULARITY 1,
    INDEX by_template template_id TYPE bloom_filter(0.01) GRANULARITY 1,
    INDEX by_word lower(concat(if(search_words = '', message, search_words), ' ', host, ' ', trace_id))
        TYPE tokenbf_v1(32768, 3, 0) GRANULARITY 1
)
ENGINE = {{engine:MergeTree}}
PARTITION BY toDate(received_at)
ORDER BY (ts, id)
TTL toDateTime(received_at) + INTERVAL {{retention_days}} DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 10000,
    enable_block_number_column = 1, enable_block_offset_column = 1,
    fsync_after_insert = 1, fsync_part_directory = 1
