-- Everything that is counted by event time in the last 48 h, exact to the second, in one pass.
-- All windows end after the running second and the long ones are whole hours, so their starts share a
-- position within the hour: only the hours at the far starts are read as minutes, only the minutes at the
-- starts and the last seven as seconds. Each part is summed where it is read: a shard of a cluster sends sums.
-- Moments come as numbers of seconds since 1970: what is worked out here is planned three times, which took longer than reading.
-- params: recent UInt32, hour_1 UInt32, hour_2 UInt32, day_1 UInt32, day_2 UInt32, stop UInt32, hours_until UInt32, minutes Array(UInt32), hours Array(UInt32), sources Array(String)
-- rows:   by_source UInt8, span UInt32, is_before UInt8, named String, n, errors, criticals, first (P1)
-- recent, hour_1, hour_2, day_1 and day_2 are where the last seven minutes and the windows begin, stop is where all end; hours are
-- read until hours_until; minutes and hours are those in which windows begin.
-- Rows with by_source 0 count a span: a second of the last seven minutes, or the part of the last 3600, 7200,
-- 86400 or 172800 seconds that no shorter one covers. Rows with by_source 1 count the last 24 h (or, with
-- is_before, those before) of one of the sources, '' for all others.
SELECT
    grouping(span) AS by_source,
    part_span AS span,
    part_span = 172800 AS is_before,
    part_named AS named,
    sum(part_n) AS n,
    sum(part_errors) AS errors,
    sum(part_criticals) AS criticals,
    sum(part_first) AS first
FROM (
    SELECT
        multiIf(
            toUnixTimestamp(t) >= {recent:UInt32}, toUnixTimestamp(t),
            toUnixTimestamp(t) >= {hour_1:UInt32}, 3600,
            toUnixTimestamp(t) >= {hour_2:UInt32}, 7200,
            toUnixTimestamp(t) >= {day_1:UInt32}, 86400,
            172800
        ) AS part_span,
        if(source IN {sources:Array(String)}, source, '') AS part_named,
        sum(debug + info + warning + error + critical) AS part_n,
        sum(error + critical) AS part_errors,
        sum(series_1s.critical) AS part_criticals,
        sum(p1) AS part_first
    FROM series_1s
    WHERE t >= toDateTime({day_2:UInt32}, 'UTC') AND t < toDateTime({stop:UInt32}, 'UTC')
        AND (t >= toDateTime({recent:UInt32}, 'UTC') OR toUnixTimestamp(toStartOfMinute(t)) IN {minutes:Array(UInt32)})
    GROUP BY part_span, part_named
    UNION ALL
    SELECT
        multiIf(
            toUnixTimestamp(t) >= {recent:UInt32}, toUnixTimestamp(t),
            toUnixTimestamp(t) >= {hour_1:UInt32}, 3600,
            toUnixTimestamp(t) >= {hour_2:UInt32}, 7200,
            toUnixTimestamp(t) >= {day_1:UInt32}, 86400,
            172800
        ) AS part_span,
        if(source IN {sources:Array(String)}, source, '') AS part_named,
        sum(debug + info + warning + error + critical) AS part_n,
        sum(error + critical) AS part_errors,
        sum(series_1m.critical) AS part_criticals,
        sum(p1) AS part_first
    FROM series_1m
    WHERE t >= toDateTime({day_2:UInt32}, 'UTC') AND t < toDateTime({recent:UInt32}, 'UTC')
        AND (t >= toDateTime({hours_until:UInt32}, 'UTC') OR toUnixTimestamp(toStartOfHour(t)) IN {hours:Array(UInt32)})
        AND toUnixTimestamp(t) NOT IN {minutes:Array(UInt32)}
    GROUP BY part_span, part_named
    UNION ALL
    SELECT
        multiIf(
            toUnixTimestamp(t) >= {recent:UInt32}, toUnixTimestamp(t),
            toUnixTimestamp(t) >= {hour_1:UInt32}, 3600,
            toUnixTimestamp(t) >= {hour_2:UInt32}, 7200,
            toUnixTimestamp(t) >= {day_1:UInt32}, 86400,
            172800
        ) AS part_span,
        if(source IN {sources:Array(String)}, source, '') AS part_named,
        sum(debug + info + warning + error + critical) AS part_n,
        sum(error + critical) AS part_errors,
        sum(series_1h.critical) AS part_criticals,
        sum(p1) AS part_first
    FROM series_1h
    WHERE t >= toDateTime({day_2:UInt32}, 'UTC') AND t < toDateTime({hours_until:UInt32}, 'UTC') AND toUnixTimestamp(t) NOT IN {hours:Array(UInt32)}
    GROUP BY part_span, part_named
)
GROUP BY GROUPING SETS ((span), (is_before, named))
