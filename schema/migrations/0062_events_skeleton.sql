-- full_message is the message as it came; it costs a microsecond a row.
-- The words of a message are those of its skeleton and those of its values; `template_totals` knows all
-- skeletons. The expression of `by_value` is written as ClickHouse rewrites it: `search_words = ''` is not, and
-- an index over that is not found.
ALTER TABLE events
    ADD COLUMN IF NOT EXISTS skeleton LowCardinality(String) CODEC(ZSTD(1)) AFTER span_id,
    ADD COLUMN IF NOT EXISTS full_message String ALIAS if(empty(skeleton), message, arrayStringConcat(arrayMap(
        (literal, value) -> concat(literal, value), splitByChar('\x01', skeleton),
        arrayResize(splitByChar('\x01', message), length(splitByChar('\x01', skeleton)), '')))),
    DROP INDEX IF EXISTS by_word,
    ADD INDEX IF NOT EXISTS by_value lower(concat(if(empty(search_words), message, search_words), ' ', host, ' ', trace_id))
        TYPE tokenbf_v1(32768, 3, 0) GRANULARITY 1,
    ADD INDEX IF NOT EXISTS by_skeleton skeleton TYPE bloom_filter(0.01) GRANULARITY 1
