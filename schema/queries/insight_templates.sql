-- The hours of the templates of a range of ids, with what the last day says of their priorities.
-- params: from UInt32, until UInt32, day UInt32, first UInt64, last UInt64
-- rows:   template String (16 hex digits), at Array (hours after from), n Array, routine, routine_events,
--         unsure_events
-- Moments are seconds since 1970, whole hours; day is the beginning of the last day.
SELECT
    leftPad(lower(hex(template_id)), 16, '0') AS template,
    groupArray(hour) AS at,
    groupArray(occurrences) AS n,
    sumIf(below_p1, is_recent) AS routine,
    sumIf(new_below_p1, is_recent) AS routine_events,
    sumIf(new_unsure, is_recent) AS unsure_events
FROM (
    SELECT
        template_id,
        toUInt16(intDiv(toUnixTimestamp(t) - {from:UInt32}, 3600)) AS hour,
        hour >= intDiv({day:UInt32} - {from:UInt32}, 3600) AS is_recent,
        sum(p1 + p2 + p3 + p4) AS occurrences,
        sum(p2 + p3 + p4) AS below_p1,
        sum(routine) AS new_below_p1,
        sum(unsure) AS new_unsure
    FROM template_stats
    WHERE template_id >= {first:UInt64} AND template_id <= {last:UInt64}
        AND t >= toDateTime({from:UInt32}, 'UTC') AND t < toDateTime({until:UInt32}, 'UTC')
    GROUP BY template_id, hour
)
GROUP BY template_id
