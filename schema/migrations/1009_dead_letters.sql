-- Messages that could not be stored, with the reason. Sorted by arrival, then id: the keyset of the list. They are few,
-- so that retention (src/retention) may delete those of a source by row.
-- shard: id
CREATE TABLE IF NOT EXISTS dead_letters
(
    id UInt64,
    received_at DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    protocol LowCardinality(String),
    source LowCardinality(String),
    key_id LowCardinality(String),
    reason LowCardinality(String),
    detail String CODEC(ZSTD(1)),
    line UInt32 CODEC(ZSTD(1)),
    raw String CODEC(ZSTD(3)),
    INDEX by_id id TYPE minmax GRANULARITY 1
)
ENGINE = {{engine:MergeTree}}
PARTITION BY toDate(received_at)
ORDER BY (received_at, id)
SETTINGS non_replicated_deduplication_window = 10000,
    fsync_after_insert = 1, fsync_part_directory = 1;

-- An insert checks whether ClickHouse can read the rows, and stores nothing.
-- shard: home
CREATE TABLE IF NOT EXISTS dead_letters_probe AS dead_letters
ENGINE = Null;
