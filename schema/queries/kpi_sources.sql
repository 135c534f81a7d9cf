-- What some sources counted from one second up to another (not included).
-- Seconds and minutes are read only at the ends that no whole minute and hour covers, so that the counts
-- are exact to the second.
-- params: from UInt32, until UInt32, sources Array(String)
-- rows:   source String, occurrences, errors, p1
WITH
    toDateTime({from:UInt32}, 'UTC') AS start,
    toDateTime({until:UInt32}, 'UTC') AS stop,
    toDateTime(intDiv({from:UInt32} + 59, 60) * 60, 'UTC') AS first_minute,
    toDateTime(intDiv({until:UInt32}, 60) * 60, 'UTC') AS last_minute,
    toDateTime(intDiv({from:UInt32} + 3599, 3600) * 3600, 'UTC') AS first_hour,
    toDateTime(intDiv({until:UInt32}, 3600) * 3600, 'UTC') AS last_hour
SELECT
    source,
    sum(debug + info + warning + error + critical) AS occurrences,
    sum(error + critical) AS errors,
    sum(spans.p1) AS p1
FROM (
    SELECT source, debug, info, warning, error, critical, p1 FROM series_1s
    WHERE t >= start AND t < stop AND (t < first_minute OR t >= last_minute)
        AND source IN {sources:Array(String)}
    UNION ALL
    SELECT source, debug, info, warning, error, critical, p1 FROM series_1m
    WHERE t >= first_minute AND t < last_minute AND (t < first_hour OR t >= last_hour)
        AND source IN {sources:Array(String)}
    UNION ALL
    SELECT source, debug, info, warning, error, critical, p1 FROM series_1h
    WHERE t >= first_hour AND t < last_hour
        AND source IN {sources:Array(String)}
) AS spans
GROUP BY source
HAVING occurrences > 0
