-- The newest buckets of five seconds.
-- A page of n buckets is within the newest n minutes with occurrences, and these within the newest n hours,
-- so only these are read, however sparse the source is.
-- params: from UInt32, until UInt32, sources Array(String), limit UInt32, offset UInt32
-- rows:   bucket UInt32, debug, info, warning, error, critical, p1, p2, p3, p4
-- Times are seconds since 1970, from and until whole steps; no source = any; limit and offset at least
-- 1 and 0.
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
    sum(series_1s.p4) AS p4
FROM series_1s
WHERE t >= toDateTime({from:UInt32}, 'UTC') AND t < toDateTime({until:UInt32}, 'UTC')
    AND (empty({sources:Array(String)}) OR source IN {sources:Array(String)})
    AND toStartOfMinute(t) IN (
        SELECT t FROM series_1m
        WHERE t >= toStartOfMinute(toDateTime({from:UInt32}, 'UTC')) AND t < toDateTime({until:UInt32}, 'UTC')
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
        GROUP BY t
        HAVING sum(p1 + p2 + p3 + p4) > 0
        ORDER BY t DESC
        LIMIT {limit:UInt32} + {offset:UInt32}
    )
GROUP BY bucket
HAVING sum(series_1s.p1 + series_1s.p2 + series_1s.p3 + series_1s.p4) > 0
ORDER BY bucket DESC
LIMIT {limit:UInt32} OFFSET {offset:UInt32}
