-- The newest hours.
-- params: from UInt32, until UInt32, sources Array(String), limit UInt32, offset UInt32
-- rows:   bucket UInt32, debug, info, warning, error, critical, p1, p2, p3, p4
-- Times are seconds since 1970, from and until whole steps; no source = any; limit and offset at least
-- 1 and 0.
SELECT
    toUnixTimestamp(t) AS bucket,
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
WHERE t >= toDateTime({from:UInt32}, 'UTC') AND t < toDateTime({until:UInt32}, 'UTC')
    AND (empty({sources:Array(String)}) OR source IN {sources:Array(String)})
GROUP BY bucket
HAVING sum(series_1h.p1 + series_1h.p2 + series_1h.p3 + series_1h.p4) > 0
ORDER BY bucket DESC
LIMIT {limit:UInt32} OFFSET {offset:UInt32}
