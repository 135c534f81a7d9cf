-- Blocks of event ids that some instance has reserved; never shortened, so that no id is given twice.
-- Sorted by block: a reservation starts above the greatest.
CREATE TABLE IF NOT EXISTS id_blocks
(
    block UInt64,
    owner String,
    reserved_at DateTime64(3, 'UTC') DEFAULT now64(3)
)
ENGINE = {{engine:MergeTree}}
ORDER BY (block, owner)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1
