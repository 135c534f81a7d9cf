-- The occurrences of a time range by the rollups, each part of the range by the coarsest that has its ends.
-- The expressions come from a closed table of fragments.
-- params: seconds_from UInt32, minutes_from UInt32, hours_from UInt32, hours_until UInt32, minutes_until UInt32, seconds_until UInt32, sources Array(String)
-- rows:   at, occurrences, begun (0), k0
-- Times are seconds since 1970 in ascending order, the hours and minutes whole ones; no source = any.
SELECT toDateTime64(t, 3, 'UTC') AS at, /*counted*/ AS occurrences, 0 AS begun, /*value*/ AS k0
FROM (
    SELECT t, source, debug, info, warning, error, critical, p1, p2, p3, p4
    FROM series_1s
    WHERE (t >= toDateTime({seconds_from:UInt32}, 'UTC') AND t < toDateTime({minutes_from:UInt32}, 'UTC'))
        OR (t >= toDateTime({minutes_until:UInt32}, 'UTC') AND t < toDateTime({seconds_until:UInt32}, 'UTC'))
    UNION ALL
    SELECT t, source, debug, info, warning, error, critical, p1, p2, p3, p4
    FROM series_1m
    WHERE (t >= toDateTime({minutes_from:UInt32}, 'UTC') AND t < toDateTime({hours_from:UInt32}, 'UTC'))
        OR (t >= toDateTime({hours_until:UInt32}, 'UTC') AND t < toDateTime({minutes_until:UInt32}, 'UTC'))
    UNION ALL
    SELECT t, source, debug, info, warning, error, critical, p1, p2, p3, p4
    FROM series_1h
    WHERE t >= toDateTime({hours_from:UInt32}, 'UTC') AND t < toDateTime({hours_until:UInt32}, 'UTC')
) AS series
WHERE empty({sources:Array(String)}) OR source IN {sources:Array(String)}
