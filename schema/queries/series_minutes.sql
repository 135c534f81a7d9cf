-- The newest minutes.
-- A page of n minutes is within the newest n hours with occurrences, so only these are read,
-- however sparse the source is.
-- params: from UInt32, until UInt32, sources Array(String), limit UInt32, offset UInt32
-- rows:   bucket UInt32, debug, info, warning, error, critical, p1, p2, p3, p4
-- Times are seconds since 1970, from and until whole steps; no source = any; limit and offset at least
-- 1 and 0.
SELECT
    toUnixTimestamp(t) AS bucket,
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
WHERE t >= toDateTime({from:UInt32}, 'UTC') AND t < toDateTime({until:UInt32}, 'UTC')
    AND (empty({sources:Array(String)}) OR source IN {sources:Array(String)})
    AND toStartOfHour(t) IN (
        SELECT t FROM series_1h
        WHERE t >= toStartOfHour(toDateTime({from:UInt32}, 'UTC')) AND t < toDateTime({until:UInt32}, 'UTC')
            AND (empty({sources:Array(String)}) OR source IN {sources:Array(String)})
        GROUP BY t
        HAVING sum(p1 + p2 + p3 + p4) > 0
        ORDER BY t DESC
        LIMIT {limit:UInt32} + {offset:UInt32}
    )
GROUP BY bucket
HAVING sum(series_1m.p1 + series_1m.p2 + series_1m.p3 + series_1m.p4) > 0
ORDER BY bucket DESC
LIMIT {limit:UInt32} OFFSET {offset:UInt32}
