-- Values take 24 bytes of an event: 22.6 at this level, for a few hundredths of the CPU of an insert (bench/NOTES.md). What is
-- stored already changes when it is merged.
ALTER TABLE events
    MODIFY COLUMN IF EXISTS message CODEC(ZSTD(3))
