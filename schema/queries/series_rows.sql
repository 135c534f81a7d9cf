-- The occurrences of a time range by the rollups, each part of the range by the coarsest that has its ends.
-- They are added up by bucket before they are told by value, which takes two thirds of the time (bench/NOTES.md).
-- The expressions come from a closed table of fragments.
-- params: seconds_from UInt32, minutes_from UInt32, hours_from UInt32, hours_until UInt32, minutes_until UInt32, seconds_until UInt32, sources Array(String), step_s Int64 (0 = no buckets)
-- rows:   at (the start of the bucket), occurrences, begun (0), k0
-- Times are seconds since 1970 in ascending order, the hours and minutes whole ones; no source = any.
SELECT toDateTime64(bucket, 3, 'UTC') AS at, /*counted*/ AS occurrences, 0 AS begun, /*value*/ AS k0
FROM (
    SELECT
        if({step_s:Int64} = 0, 0, intDiv(toUnixTimestamp(t), {step_s:Int64}) * {step_s:Int64}) AS bucket, any(series.source) AS source,
        sum(series.debug) AS debug, sum(series.info) AS info, sum(series.warning) AS warning, sum(series.error) AS error, sum(series.critical) AS critical,
        sum(series.p1) AS p1, sum(series.p2) AS p2, sum(series.p3) AS p3, sum(series.p4) AS p4
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
    WHERE empty({sources:Array(String)}) OR series.source IN {sources:Array(String)}
    GROUP BY bucket/*group*/
)
