-- The newest buckets of five seconds within a span that is short.
-- params: from UInt32, until UInt32, sources Array(String), now UInt32, limit UInt32
-- rows:   bucket UInt32, debug, info, warning, error, critical, p1, p2, p3, p4, latest, latest_past
-- Times are seconds since 1970, from and until whole steps; no source = any.
-- latest is the bucket's last second with occurrences, latest_past the last one up to now; 0 = none.
SELECT
    intDiv(toUnixTimestamp(t), 5) * 5 AS bucket,
    sum(series_1s.debug) AS debug,
    sum(series_1s.info) AS info,
    sum(series_1s.warning) AS warning,
    sum(series_1s.error) AS error,
    sum(series_1s.critical) AS critical,
    sum(series_1s.p1) AS p1,
    sum(series_1s.p2) AS p2,
    sum(series_1s.p3) AS p3,
    sum(series_1s.p4) AS p4,
    toUnixTimestamp(max(t)) AS latest,
    toUnixTimestamp(maxIf(t, t <= toDateTime({now:UInt32}, 'UTC'))) AS latest_past
FROM series_1s
WHERE t >= toDateTime({from:UInt32}, 'UTC') AND t < toDateTime({until:UInt32}, 'UTC')
    AND (empty({sources:Array(String)}) OR source IN {sources:Array(String)})
GROUP BY bucket
HAVING p1 + p2 + p3 + p4 > 0
ORDER BY bucket DESC
LIMIT {limit:UInt32}
SETTINGS max_threads = 1
