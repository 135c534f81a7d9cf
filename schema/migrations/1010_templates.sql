-- Mined templates; read whole into memory at the start. redirect_to 0 = none, the template itself = deleted. born is the arrival of the first
-- message of a template, in microseconds since 1970: of templates that are merged the oldest stays, whichever
-- instance merges them. Sorted by source and id: the newest version of a template replaces the others.
-- shard: home by source
CREATE TABLE IF NOT EXISTS templates
(
    source LowCardinality(String),
    template_id UInt64,
    version UInt64,
    born UInt64 DEFAULT version * 1000,
    redirect_to UInt64,
    text String CODEC(ZSTD(1))
)
ENGINE = {{engine:ReplacingMergeTree(version)}}
ORDER BY (source, template_id)
SETTINGS non_replicated_deduplication_window = 10000, fsync_after_insert = 1, fsync_part_directory = 1;
