-- Times and ids grow by little: of each 64 differences only the bits that differ are kept, which ZSTD then packs in
-- less time (bench/README.md). As are priorities and severities, which are two or three bits. What is stored already changes
-- when it is merged.
ALTER TABLE events
    MODIFY COLUMN id CODEC(Delta, T64('bit'), ZSTD(1)),
    MODIFY COLUMN received_at CODEC(ZSTD(1)),
    MODIFY COLUMN ts CODEC(Delta, T64('bit'), ZSTD(1)),
    MODIFY COLUMN severity CODEC(T64('bit'), ZSTD(1)),
    MODIFY COLUMN priority CODEC(T64('bit'), ZSTD(1)),
    MODIFY COLUMN auto_priority CODEC(T64('bit'), ZSTD(1))
