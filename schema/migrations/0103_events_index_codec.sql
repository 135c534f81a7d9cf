-- The filters of words are what no column's codec tells how to keep: three bytes an event with ZSTD, four with LZ4 (bench/NOTES.md).
ALTER TABLE events MODIFY SETTING default_compression_codec = 'ZSTD(1)'
