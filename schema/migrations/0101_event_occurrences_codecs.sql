-- As in 0100: a sixth less of what repeats take.
ALTER TABLE event_occurrences
    MODIFY COLUMN id CODEC(Delta, T64('bit'), ZSTD(1)),
    MODIFY COLUMN t CODEC(Delta, T64('bit'), ZSTD(1)),
    MODIFY COLUMN priority CODEC(T64('bit'), ZSTD(1)),
    MODIFY COLUMN n CODEC(T64('bit'), ZSTD(1)),
    MODIFY COLUMN last_ts CODEC(Delta, T64('bit'), ZSTD(1))
