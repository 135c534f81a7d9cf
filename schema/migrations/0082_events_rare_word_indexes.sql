-- Where 0080 ran when it still made filters that were wrong for one granule in forty.
ALTER TABLE events
    ADD INDEX IF NOT EXISTS by_search_words tokens(search_words) TYPE bloom_filter(0.001) GRANULARITY 1,
    ADD INDEX IF NOT EXISTS by_trace_id tokens(lower(trace_id)) TYPE bloom_filter(0.001) GRANULARITY 1,
    DROP INDEX IF EXISTS by_words,
    DROP INDEX IF EXISTS by_trace
SETTINGS alter_sync = 0
