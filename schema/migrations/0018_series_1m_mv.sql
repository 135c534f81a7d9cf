CREATE MATERIALIZED VIEW IF NOT EXISTS series_1m_mv TO series_1m AS
SELECT
    arrival,
    toStartOfMinute(series_1s.t) AS t,
    source,
    sum(series_1s.debug) AS debug,
    sum(series_1s.info) AS info,
    sum(series_1s.warning) AS warning,
    sum(series_1s.error) AS error,
    sum(series_1s.critical) AS critical,
    sum(series_1s.p1) AS p1,
    sum(series_1s.p2) AS p2,
    sum(series_1s.p3) AS p3,
    sum(series_1s.p4) AS p4
FROM series_1s
GROUP BY arrival, t, source
