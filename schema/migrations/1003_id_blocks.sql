-- Ranges of event ids that an instance has reserved: first_id up to, not including, end_id. Rows are never
-- removed, so that no id is assigned twice. Sorted by range: a reservation starts where the last one ends.
-- shard: home
CREATE TABLE IF NOT EXISTS id_blocks
(
    first_id UInt64,
    end_id UInt64,
    owner String,
    reserved_at DateTime64(3, 'UTC') DEFAULT now64(3)
)
ENGINE = {{engine:MergeTree}}
ORDER BY (first_id, owner)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1;
