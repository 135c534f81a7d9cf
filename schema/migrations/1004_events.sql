-- One row per event. Partitioned by the day of arrival and the retention class, so that an insert touches few
-- partitions whatever its event times are, and retention (src/retention) drops whole ones. Sorted by event time, then
-- id: pages newest-first read in order and the keyset (ts, id) is a range of the sort key.
--
-- kept_days is the retention class that the event arrived under: days, or 0 where RETENTION_DAYS holds. A database that was
-- made before 1018 is partitioned by day alone and has no such column.
--
-- A message is stored in two columns: constant_text is the constant text of its template with one byte 1 where
-- each variable stands, variables are the values joined by that byte. Where constant_text is '', variables is the
-- whole message. The column message puts both together, for a microsecond a row.
-- Tags are stored as attributes: attribute_names has the paths of all values, attribute_values the values as JSON, in the same
-- order, both with one byte 1 between. The events of a source have few different attribute_names. A list gives its path
-- several times, and so does a text that is a number in another than its shortest form. tags_text is the JSON of tags
-- that the attributes do not give back byte for byte; the column tags is the JSON of all tags.
-- auto_priority is the priority that the first occurrences of the event were counted under; corrections need it.
--
-- A search covers the constant text (template_totals has all of them), the variables, the host and the trace. An
-- index over one column is computed while that column is merged; one over several columns makes ClickHouse merge
-- them row by row, so each column has its own index. The Bloom filter of variables is written with every part, so
-- that a word search skips unmerged parts too. Search words and traces are rare: their Bloom filters have 0.1 %
-- false positives (with 2.5 %, a search of 50 million events read 160 of 6,200 granules in vain, more than half of
-- its time). has_trace skips unmerged parts without traces. Severities and priorities need no index: series_1h has
-- their counts for each hour. by_attribute has the hash of each path with its value, without quotes, so that a text and a
-- number that are written alike are one; by_attribute_names rules out granules without a path.
--
-- Times and ids increase in small steps: of each 64 differences T64('bit') keeps the bits that differ (bench/NOTES.md
-- has the measurements of the codecs). default_compression_codec applies to the indexes.
-- shard: view
CREATE TABLE IF NOT EXISTS events
(
    id UInt64 CODEC(Delta, T64('bit'), ZSTD(1)),
    kept_days UInt16 CODEC(ZSTD(1)),
    n Int32 CODEC(T64, ZSTD(1)),
    received_at DateTime64(3, 'UTC') CODEC(ZSTD(1)),
    ts DateTime64(3, 'UTC') CODEC(Delta, T64('bit'), ZSTD(1)),
    source LowCardinality(String) CODEC(ZSTD(1)),
    type Enum8('log' = 0, 'metric' = 1, 'trace' = 2, 'event' = 3) CODEC(ZSTD(1)),
    severity Enum8('DEBUG' = 0, 'INFO' = 1, 'WARNING' = 2, 'ERROR' = 3, 'CRITICAL' = 4) CODEC(T64('bit'), ZSTD(1)),
    priority Enum8('P1' = 0, 'P2' = 1, 'P3' = 2, 'P4' = 3) CODEC(T64('bit'), ZSTD(1)),
    auto_priority Enum8('P1' = 0, 'P2' = 1, 'P3' = 2, 'P4' = 3) CODEC(T64('bit'), ZSTD(1)),
    priority_source Enum8('auto' = 0, 'template' = 1, 'manual' = 2) CODEC(ZSTD(1)),
    confidence Float32 CODEC(ZSTD(1)),
    model_version LowCardinality(String) CODEC(ZSTD(1)),
    template_id UInt64 CODEC(ZSTD(1)),
    host LowCardinality(String) CODEC(ZSTD(1)),
    environment LowCardinality(String) CODEC(ZSTD(1)),
    trace_id String CODEC(ZSTD(1)),
    span_id String CODEC(ZSTD(1)),
    constant_text LowCardinality(String) CODEC(ZSTD(1)),
    variables String CODEC(ZSTD(3)),
    search_words String CODEC(ZSTD(1)),
    summary String CODEC(ZSTD(1)),
    attribute_names LowCardinality(String) CODEC(ZSTD(1)),
    attribute_values String CODEC(ZSTD(1)),
    tags_text String CODEC(ZSTD(1)),
    dedup_key String CODEC(ZSTD(1)),
    correction_reason String DEFAULT '' CODEC(ZSTD(1)),
    message String ALIAS if(empty(constant_text), variables, arrayStringConcat(arrayMap(
        (literal, value) -> concat(literal, value), splitByChar('\x01', constant_text),
        arrayResize(splitByChar('\x01', variables), length(splitByChar('\x01', constant_text)), '')))),
    tags String ALIAS if(notEmpty(tags_text) OR empty(attribute_names), tags_text, concat('{', arrayStringConcat(arrayMap(
        (name, value) -> concat('"', name, '":', value), splitByChar('\x01', attribute_names),
        splitByChar('\x01', attribute_values)), ','), '}')),
    INDEX by_id id TYPE minmax GRANULARITY 1,
    INDEX by_source source TYPE set(256) GRANULARITY 1,
    INDEX by_template template_id TYPE bloom_filter(0.01) GRANULARITY 1,
    INDEX by_constant_text constant_text TYPE bloom_filter(0.01) GRANULARITY 1,
    INDEX by_variables lower(variables) TYPE tokenbf_v1(32768, 3, 0) GRANULARITY 1,
    INDEX by_search_words tokens(search_words) TYPE bloom_filter(0.001) GRANULARITY 1,
    INDEX has_trace trace_id TYPE minmax GRANULARITY 1,
    INDEX by_trace_id tokens(lower(trace_id)) TYPE bloom_filter(0.001) GRANULARITY 1,
    INDEX by_attribute arrayMap((name, value) -> cityHash64(name, trim(BOTH '"' FROM value)),
        splitByChar('\x01', attribute_names), splitByChar('\x01', attribute_values)) TYPE bloom_filter(0.01) GRANULARITY 1,
    INDEX by_attribute_names attribute_names TYPE set(256) GRANULARITY 1,
    INDEX by_host host TYPE bloom_filter(0.01) GRANULARITY 1
)
ENGINE = {{engine:MergeTree}}
PARTITION BY (toDate(received_at), kept_days)
ORDER BY (ts, id)
SETTINGS non_replicated_deduplication_window = 10000,
    enable_block_number_column = 1, enable_block_offset_column = 1,
    fsync_after_insert = 1, fsync_part_directory = 1, default_compression_codec = 'ZSTD(1)';

CREATE MATERIALIZED VIEW IF NOT EXISTS events_mv TO events
(
    id UInt64,
    kept_days UInt16,
    n Int32,
    received_at DateTime64(3, 'UTC'),
    ts DateTime64(3, 'UTC'),
    source LowCardinality(String),
    type Enum8('log' = 0, 'metric' = 1, 'trace' = 2, 'event' = 3),
    severity Enum8('DEBUG' = 0, 'INFO' = 1, 'WARNING' = 2, 'ERROR' = 3, 'CRITICAL' = 4),
    priority Enum8('P1' = 0, 'P2' = 1, 'P3' = 2, 'P4' = 3),
    auto_priority Enum8('P1' = 0, 'P2' = 1, 'P3' = 2, 'P4' = 3),
    priority_source Enum8('auto' = 0, 'template' = 1, 'manual' = 2),
    confidence Float32,
    model_version LowCardinality(String),
    template_id UInt64,
    host LowCardinality(String),
    environment LowCardinality(String),
    trace_id String,
    span_id String,
    constant_text LowCardinality(String),
    variables String,
    search_words String,
    summary String,
    attribute_names LowCardinality(String),
    attribute_values String,
    tags_text String,
    dedup_key String
)
AS SELECT
    id, kept_days, n, received_at, ts, source, type, severity, priority, priority AS auto_priority, priority_source,
    confidence, model_version, template_id, host, environment, trace_id, span_id, constant_text, variables,
    search_words, summary, attribute_names, attribute_values, tags_text, dedup_key
FROM landing
WHERE is_new;
