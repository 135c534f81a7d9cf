-- Occurrences of each template in a span and in the hours that it is compared with; merged templates count as one.
-- params: severity String, before UInt32, earlier Array(UInt32), from UInt32, until UInt32, source String, merged Array(UInt64), into Array(UInt64)
-- rows:   name (template id, 16 hex digits), before, during
-- Times are seconds since 1970, whole hours; those compared with are `earlier`, from `before` on; an empty source or severity matches any.
WITH multiIf(
    {severity:String} = 'DEBUG', debug,
    {severity:String} = 'INFO', info,
    {severity:String} = 'WARNING', warning,
    {severity:String} = 'ERROR', error,
    {severity:String} = 'CRITICAL', critical,
    debug + info + warning + error + critical
) AS counted
SELECT
    leftPad(lower(hex(transform(template_id, {merged:Array(UInt64)}, {into:Array(UInt64)}, template_id))), 16, '0') AS name,
    sumIf(counted, t < toDateTime({from:UInt32}, 'UTC')) AS before,
    sumIf(counted, t >= toDateTime({from:UInt32}, 'UTC')) AS during
FROM template_stats
WHERE t >= toDateTime({before:UInt32}, 'UTC') AND t < toDateTime({until:UInt32}, 'UTC')
    AND (t >= toDateTime({from:UInt32}, 'UTC')
        OR t IN (SELECT toDateTime(arrayJoin({earlier:Array(UInt32)}), 'UTC')))
    AND ({source:String} = '' OR source = {source:String})
GROUP BY name
HAVING before != 0 OR during != 0
