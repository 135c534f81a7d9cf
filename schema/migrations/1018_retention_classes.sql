-- The retention class of a row, for databases that were made before `landing` had it. Their `events` and `event_occurrences`
-- stay partitioned by day: retention deletes rows of them where it drops partitions of a newer database.
ALTER TABLE landing ADD COLUMN IF NOT EXISTS kept_days UInt16 AFTER id;

ALTER TABLE landing_probe ADD COLUMN IF NOT EXISTS kept_days UInt16 AFTER id;
