-- The newest days within a span.
-- params: from UInt32, until UInt32, sources Array(String), limit UInt32
-- rows:   bucket UInt32, debug, info, warning, error, critical, p1, p2, p3, p4
-- Times are seconds since 1970, from and until whole steps; no source = any.
SELECT
    toUnixTimestamp(toDateTime(t, 'UTC')) AS bucket,
    sum(series_1d.debug) AS debug,
    sum(series_1d.info) AS info,
    sum(series_1d.warning) AS warning,
    sum(series_1d.error) AS error,
    sum(series_1d.critical) AS critical,
    sum(series_1d.p1) AS p1,
    sum(series_1d.p2) AS p2,
    sum(series_1d.p3) AS p3,
    sum(series_1d.p4) AS p4
FROM series_1d
WHERE t >= toDate(toDateTime({from:UInt32}, 'UTC')) AND t < toDate(toDateTime({until:UInt32}, 'UTC'))
    AND (empty({sources:Array(String)}) OR source IN {sources:Array(String)})
GROUP BY bucket
HAVING p1 + p2 + p3 + p4 > 0
ORDER BY bucket DESC
LIMIT {limit:UInt32}
SETTINGS max_threads = 1
