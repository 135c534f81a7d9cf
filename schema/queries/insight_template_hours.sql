-- Hourly counts of a range of templates, both ends included.
-- params: from UInt32, until UInt32, first UInt64, last UInt64
-- rows:   template UInt64, at Array(UInt16) (hours after from), n Array(Int32)
-- Times are seconds since 1970, whole hours. The counts of an hour that comes several times add up.
SELECT
    template_id AS template,
    groupArray(toUInt16(intDiv(toUnixTimestamp(t) - {from:UInt32}, 3600))) AS at,
    groupArray(toInt32(p1 + p2 + p3 + p4)) AS n
FROM template_stats
WHERE t >= toDateTime({from:UInt32}, 'UTC') AND t < toDateTime({until:UInt32}, 'UTC')
    AND template_id >= {first:UInt64} AND template_id <= {last:UInt64}
GROUP BY template_id
