CREATE MATERIALIZED VIEW IF NOT EXISTS event_occurrences_mv TO event_occurrences AS
SELECT toDate(received_at) AS arrival, id, toDateTime(ts, 'UTC') AS t, priority, source, sum(landing.n) AS n, max(ts) AS last_ts
FROM landing
WHERE NOT is_new
GROUP BY arrival, id, t, priority, source
