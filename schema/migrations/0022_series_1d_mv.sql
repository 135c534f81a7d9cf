CREATE MATERIALIZED VIEW IF NOT EXISTS series_1d_mv TO series_1d AS
SELECT
    arrival,
    toDate(series_1h.t) AS t,
    source,
    sum(series_1h.debug) AS debug,
    sum(series_1h.info) AS info,
    sum(series_1h.warning) AS warning,
    sum(series_1h.error) AS error,
    sum(series_1h.critical) AS critical,
    sum(series_1h.p1) AS p1,
    sum(series_1h.p2) AS p2,
    sum(series_1h.p3) AS p3,
    sum(series_1h.p4) AS p4
FROM series_1h
GROUP BY arrival, t, source
