-- Mined templates; read whole into memory at the start. redirect_to 0 = none.
-- shard: home by source
CREATE TABLE IF NOT EXISTS templates
(
    source LowCardinality(String),
    template_id UInt64,
    version UInt64,
    redirect_to UInt64,
    text String CODEC(ZSTD(1))
)
ENGINE = {{engine:ReplacingMergeTree(version)}}
ORDER BY (source, template_id)
SETTINGS non_replicated_deduplication_window = 10000, fsync_after_insert = 1, fsync_part_directory = 1
