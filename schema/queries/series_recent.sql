-- The greatest second with occurrences within a short span.
-- params: from UInt32, upto UInt32, sources Array(String)
-- rows:   found UInt64 (0 = none), latest UInt32 (seconds since 1970)
SELECT count() AS found, toUnixTimestamp(max(t)) AS latest
FROM (
    SELECT t FROM series_1s
    WHERE t >= toDateTime({from:UInt32}, 'UTC') AND t <= toDateTime({upto:UInt32}, 'UTC')
        AND (empty({sources:Array(String)}) OR source IN {sources:Array(String)})
    GROUP BY t
    HAVING sum(p1 + p2 + p3 + p4) > 0
)
