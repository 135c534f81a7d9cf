-- Occurrences per bucket from one second up to another (not included); empty buckets are left out.
-- Seconds and minutes are read only at the ends that no whole minute and hour covers, so that the counts
-- are exact to the second.
-- params: from UInt32, until UInt32, step UInt32
-- rows:   bucket UInt32 (seconds since 1970), stored
WITH
    toDateTime({from:UInt32}, 'UTC') AS start,
    toDateTime({until:UInt32}, 'UTC') AS stop,
    toDateTime(intDiv({from:UInt32} + 59, 60) * 60, 'UTC') AS first_minute,
    toDateTime(intDiv({until:UInt32}, 60) * 60, 'UTC') AS last_minute,
    toDateTime(intDiv({from:UInt32} + 3599, 3600) * 3600, 'UTC') AS first_hour,
    toDateTime(intDiv({until:UInt32}, 3600) * 3600, 'UTC') AS last_hour
SELECT
    intDiv(toUnixTimestamp(t), {step:UInt32}) * {step:UInt32} AS bucket,
    sum(debug + info + warning + error + critical) AS stored
FROM (
    SELECT t, debug, info, warning, error, critical FROM series_1s
    WHERE t >= start AND t < stop AND (t < first_minute OR t >= last_minute)
    UNION ALL
    SELECT t, debug, info, warning, error, critical FROM series_1m
    WHERE t >= first_minute AND t < last_minute AND (t < first_hour OR t >= last_hour)
    UNION ALL
    SELECT t, debug, info, warning, error, critical FROM series_1h
    WHERE t >= first_hour AND t < last_hour
)
GROUP BY bucket
HAVING stored > 0
ORDER BY bucket
