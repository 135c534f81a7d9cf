-- Counts by event time of the last 48 h in whole minutes: the last two hours, and the hours in which windows begin.
-- params: recent UInt32, hour_1 UInt32, hour_2 UInt32, day_1 UInt32, day_2 UInt32, hours_until UInt32, minutes Array(UInt32), hours Array(UInt32), sources Array(String)
-- rows:   by_source UInt8, span UInt32, is_before UInt8, named String, n, errors, criticals, first (P1)
-- The columns of kpi_seconds, which counts the minutes that are left out here. Hours are read until hours_until, except
-- those in which windows begin.
SELECT
    grouping(span) AS by_source,
    multiIf(
        toUnixTimestamp(t) >= {hour_1:UInt32}, 3600,
        toUnixTimestamp(t) >= {hour_2:UInt32}, 7200,
        toUnixTimestamp(t) >= {day_1:UInt32}, 86400,
        172800
    ) AS span,
    span = 172800 AS is_before,
    if(source IN {sources:Array(String)}, source, '') AS named,
    sum(debug + info + warning + error + critical) AS n,
    sum(error + critical) AS errors,
    sum(series_1m.critical) AS criticals,
    sum(p1) AS first
FROM series_1m
WHERE t >= toDateTime({day_2:UInt32}, 'UTC') AND t < toDateTime({recent:UInt32}, 'UTC')
    AND (t >= toDateTime({hours_until:UInt32}, 'UTC') OR toUnixTimestamp(toStartOfHour(t)) IN {hours:Array(UInt32)})
    AND toUnixTimestamp(t) NOT IN {minutes:Array(UInt32)}
GROUP BY GROUPING SETS ((span), (is_before, named))
