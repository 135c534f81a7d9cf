-- Counts by event time of the last 48 h in whole hours, without the last two.
-- params: day_1 UInt32, day_2 UInt32, hours_until UInt32, hours Array(UInt32), sources Array(String)
-- rows:   by_source UInt8, span UInt32, is_before UInt8, named String, n, errors, criticals, first (P1)
-- The columns of kpi_seconds; the hours in which windows begin are left out.
SELECT
    grouping(span) AS by_source,
    if(toUnixTimestamp(t) >= {day_1:UInt32}, 86400, 172800) AS span,
    span = 172800 AS is_before,
    if(source IN {sources:Array(String)}, source, '') AS named,
    sum(debug + info + warning + error + critical) AS n,
    sum(error + critical) AS errors,
    sum(series_1h.critical) AS criticals,
    sum(p1) AS first
FROM series_1h
WHERE t >= toDateTime({day_2:UInt32}, 'UTC') AND t < toDateTime({hours_until:UInt32}, 'UTC')
    AND toUnixTimestamp(t) NOT IN {hours:Array(UInt32)}
GROUP BY GROUPING SETS ((span), (is_before, named))
