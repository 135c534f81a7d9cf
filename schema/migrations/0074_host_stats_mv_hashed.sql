-- Names are grouped by their hashes: a group key of texts beside other columns is built row by row, one of numbers is not
-- (0.21 against 0.06 µs a row). The hash of a LowCardinality column is taken once per name.
CREATE MATERIALIZED VIEW IF NOT EXISTS host_stats_mv TO host_stats AS
SELECT
    toStartOfMonth(received_at) AS arrival,
    toStartOfHour(ts) AS t,
    any(landing.source) AS source,
    severity,
    any(landing.host) AS host,
    sum(landing.n) AS n
FROM landing
GROUP BY arrival, t, sipHash64(landing.source), severity, sipHash64(landing.host)
