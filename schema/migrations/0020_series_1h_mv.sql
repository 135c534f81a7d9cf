CREATE MATERIALIZED VIEW IF NOT EXISTS series_1h_mv TO series_1h AS
SELECT
    arrival,
    toStartOfHour(series_1m.t) AS t,
    source,
    sum(series_1m.debug) AS debug,
    sum(series_1m.info) AS info,
    sum(series_1m.warning) AS warning,
    sum(series_1m.error) AS error,
    sum(series_1m.critical) AS critical,
    sum(series_1m.p1) AS p1,
    sum(series_1m.p2) AS p2,
    sum(series_1m.p3) AS p3,
    sum(series_1m.p4) AS p4
FROM series_1m
GROUP BY arrival, t, source
