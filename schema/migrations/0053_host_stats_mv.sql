CREATE MATERIALIZED VIEW IF NOT EXISTS host_stats_mv TO host_stats AS
SELECT toStartOfMonth(received_at) AS arrival, toStartOfHour(ts) AS t, source, severity, host, sum(landing.n) AS n
FROM landing
GROUP BY arrival, t, source, severity, host
