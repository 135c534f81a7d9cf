-- Times and ids grow by little: of each 64 differences only the bits that differ are kept, which ZSTD then packs in
-- less time (bench/NOTES.md). As are priorities and severities, which are two or three bits. What is stored already changes
-- when it is merged.
ALTER TABLE events
    MODIFY COLUMN IF EXISTS id CODEC(Delta, T64('bit'), ZSTD(1)),
    MODIFY COLUMN IF EXISTS received_at CODEC(ZSTD(1)),
    MODIFY COLUMN IF EXISTS ts CODEC(Delta, T64('bit'), ZSTD(1)),
    MODIFY COLUMN IF EXISTS severity CODEC(T64('bit'), ZSTD(1)),
    MODIFY COLUMN IF EXISTS priority CODEC(T64('bit'), ZSTD(1)),
    MODIFY COLUMN IF EXISTS auto_priority CODEC(T64('bit'), ZSTD(1))
