-- The batches that were taken, by their tokens, which increase with time. ClickHouse forgets the token of a batch after ten
-- thousand later ones; an instance that was away for longer asks here before it offers a batch again (src/writer/taken.ts).
-- A row is written by the insert of its batch, on each shard that has rows of it.
-- shard: view
CREATE TABLE IF NOT EXISTS batches
(
    token String CODEC(ZSTD(1)),
    taken_at DateTime('UTC') DEFAULT now() CODEC(Delta, ZSTD(1))
)
ENGINE = {{engine:ReplacingMergeTree}}
PARTITION BY toYYYYMM(taken_at)
ORDER BY token
TTL taken_at + INTERVAL 31 DAY
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1;

CREATE MATERIALIZED VIEW IF NOT EXISTS batches_mv TO batches
(
    token String
)
AS SELECT getSetting('insert_deduplication_token') AS token
FROM landing
GROUP BY token;
