-- Counts by event time of the last seven minutes, and of the minutes in which longer windows begin, exact to the second.
-- params: recent UInt32, hour_1 UInt32, hour_2 UInt32, day_1 UInt32, day_2 UInt32, stop UInt32, minutes Array(UInt32), sources Array(String)
-- rows:   by_source UInt8, span UInt32, is_before UInt8, named String, n, errors, criticals, first (P1)
-- All windows end after the current second and the long ones are whole hours, so they all begin at the same second of an
-- hour: only the hours in which windows begin are read as minutes (kpi_minutes), all others as hours (kpi_hours), and only
-- the minutes in which windows begin and the last seven as seconds. ClickHouse plans three statements in half the time of
-- one with three parts, and in parallel. recent, hour_1, hour_2, day_1 and day_2 are where the last seven minutes and the windows begin, in
-- seconds since 1970, stop is where all end; minutes are those in which windows begin.
-- Rows with by_source 0 count a span: a second of the last seven minutes, or the part of the last 3600, 7200, 86400 or
-- 172800 seconds that no shorter one covers. Rows with by_source 1 count the last 24 h (or, with is_before, those before) of
-- one of the sources, '' for all others.
SELECT
    grouping(span) AS by_source,
    multiIf(
        toUnixTimestamp(t) >= {recent:UInt32}, toUnixTimestamp(t),
        toUnixTimestamp(t) >= {hour_1:UInt32}, 3600,
        toUnixTimestamp(t) >= {hour_2:UInt32}, 7200,
        toUnixTimestamp(t) >= {day_1:UInt32}, 86400,
        172800
    ) AS span,
    span = 172800 AS is_before,
    if(source IN {sources:Array(String)}, source, '') AS named,
    sum(debug + info + warning + error + critical) AS n,
    sum(error + critical) AS errors,
    sum(series_1s.critical) AS criticals,
    sum(p1) AS first
FROM series_1s
WHERE t >= toDateTime({day_2:UInt32}, 'UTC') AND t < toDateTime({stop:UInt32}, 'UTC')
    AND (t >= toDateTime({recent:UInt32}, 'UTC') OR toUnixTimestamp(toStartOfMinute(t)) IN {minutes:Array(UInt32)})
GROUP BY GROUPING SETS ((span), (is_before, named))
