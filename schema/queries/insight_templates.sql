-- The hours of the templates of a range of ids, with what the last day says of their priorities.
-- params: from UInt32, until UInt32, day UInt32, first UInt64, last UInt64
-- rows:   template String (16 hex digits), at Array (hours after from), n Array, routine, routine_events,
--         unsure_events
-- Moments are seconds since 1970, whole hours; day is the beginning of the last day. An hour may come several
-- times: its counts add up.
SELECT
    leftPad(lower(hex(template_id)), 16, '0') AS template,
    groupArray(toUInt16(intDiv(toUnixTimestamp(t) - {from:UInt32}, 3600))) AS at,
    groupArray(p1 + p2 + p3 + p4) AS n,
    sumIf(p2 + p3 + p4, t >= toDateTime({day:UInt32}, 'UTC')) AS routine,
    sumIf(template_stats.routine, t >= toDateTime({day:UInt32}, 'UTC')) AS routine_events,
    sumIf(template_stats.unsure, t >= toDateTime({day:UInt32}, 'UTC')) AS unsure_events
FROM template_stats
WHERE template_id >= {first:UInt64} AND template_id <= {last:UInt64}
    AND t >= toDateTime({from:UInt32}, 'UTC') AND t < toDateTime({until:UInt32}, 'UTC')
GROUP BY template_id
