-- As in 0100: a sixth less of what repeats take.
ALTER TABLE event_occurrences
    MODIFY COLUMN IF EXISTS id CODEC(Delta, T64('bit'), ZSTD(1)),
    MODIFY COLUMN IF EXISTS t CODEC(Delta, T64('bit'), ZSTD(1)),
    MODIFY COLUMN IF EXISTS priority CODEC(T64('bit'), ZSTD(1)),
    MODIFY COLUMN IF EXISTS n CODEC(T64('bit'), ZSTD(1)),
    MODIFY COLUMN IF EXISTS last_ts CODEC(Delta, T64('bit'), ZSTD(1))
