-- Occurrences by severity from one second up to another (not included).
-- Seconds and minutes are read only at the ends that no whole minute and hour covers, so that the counts
-- are exact to the second.
-- params: from UInt32, until UInt32, sources Array(String)
-- rows:   debug, info, warning, error, critical; always one row
WITH
    toDateTime({from:UInt32}, 'UTC') AS start,
    toDateTime({until:UInt32}, 'UTC') AS stop,
    toDateTime(intDiv({from:UInt32} + 59, 60) * 60, 'UTC') AS first_minute,
    toDateTime(intDiv({until:UInt32}, 60) * 60, 'UTC') AS last_minute,
    toDateTime(intDiv({from:UInt32} + 3599, 3600) * 3600, 'UTC') AS first_hour,
    toDateTime(intDiv({until:UInt32}, 3600) * 3600, 'UTC') AS last_hour
SELECT
    sum(spans.debug) AS debug,
    sum(spans.info) AS info,
    sum(spans.warning) AS warning,
    sum(spans.error) AS error,
    sum(spans.critical) AS critical
FROM (
    SELECT debug, info, warning, error, critical FROM series_1s
    WHERE t >= start AND t < stop AND (t < first_minute OR t >= last_minute)
        AND (empty({sources:Array(String)}) OR source IN {sources:Array(String)})
    UNION ALL
    SELECT debug, info, warning, error, critical FROM series_1m
    WHERE t >= first_minute AND t < last_minute AND (t < first_hour OR t >= last_hour)
        AND (empty({sources:Array(String)}) OR source IN {sources:Array(String)})
    UNION ALL
    SELECT debug, info, warning, error, critical FROM series_1h
    WHERE t >= first_hour AND t < last_hour
        AND (empty({sources:Array(String)}) OR source IN {sources:Array(String)})
) AS spans
