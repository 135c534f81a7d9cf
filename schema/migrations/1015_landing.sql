-- The table that batches are inserted into. It stores nothing, so it has no sort key: the views of the other
-- tables read each batch. It is created last, so that a server that restarts with an empty disk accepts no batch
-- before it has every view.
-- One row per distinct message and millisecond of a block; n may be negative (a correction moves counts).
-- constant_text, variables, attributes and kept_days are those of events.
-- shard: cityHash64(source)
CREATE TABLE IF NOT EXISTS landing
(
    id UInt64,
    kept_days UInt16,
    is_new UInt8,
    n Int32,
    received_at DateTime64(3, 'UTC'),
    ts DateTime64(3, 'UTC'),
    source LowCardinality(String),
    type Enum8('log' = 0, 'metric' = 1, 'trace' = 2, 'event' = 3),
    severity Enum8('DEBUG' = 0, 'INFO' = 1, 'WARNING' = 2, 'ERROR' = 3, 'CRITICAL' = 4),
    priority Enum8('P1' = 0, 'P2' = 1, 'P3' = 2, 'P4' = 3),
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
ENGINE = Null;

-- The columns of landing without its views: an insert checks whether ClickHouse can read the rows, and stores
-- nothing. A migration that changes the columns of landing changes these too.
-- shard: home
CREATE TABLE IF NOT EXISTS landing_probe AS landing
ENGINE = Null;
