-- Occurrences of each source in a span and in the hours that it is compared with.
-- params: severity String, before UInt32, earlier Array(UInt32), from UInt32, until UInt32
-- rows:   name, before, during
-- Times are seconds since 1970, whole hours; those compared with are `earlier`, from `before` on; an empty severity matches any.
WITH multiIf(
    {severity:String} = 'DEBUG', series_1h.debug,
    {severity:String} = 'INFO', series_1h.info,
    {severity:String} = 'WARNING', series_1h.warning,
    {severity:String} = 'ERROR', series_1h.error,
    {severity:String} = 'CRITICAL', series_1h.critical,
    series_1h.debug + series_1h.info + series_1h.warning + series_1h.error + series_1h.critical
) AS counted
SELECT
    source AS name,
    sumIf(counted, t < toDateTime({from:UInt32}, 'UTC')) AS before,
    sumIf(counted, t >= toDateTime({from:UInt32}, 'UTC')) AS during
FROM series_1h
WHERE t >= toDateTime({before:UInt32}, 'UTC') AND t < toDateTime({until:UInt32}, 'UTC')
    AND (t >= toDateTime({from:UInt32}, 'UTC')
        OR t IN (SELECT toDateTime(arrayJoin({earlier:Array(UInt32)}), 'UTC')))
GROUP BY source
HAVING before != 0 OR during != 0
