-- Occurrences, events and events of low confidence below P1 of each template in a span.
-- params: from UInt32, until UInt32 (seconds since 1970, whole hours)
-- rows:   template UInt64, routine (occurrences below P1), routine_events, unsure_events (events below P1 and those
--         of them with a confidence under a half), all Float64
SELECT
    template_id AS template,
    toFloat64(sum(p2 + p3 + p4)) AS routine,
    toFloat64(sum(template_stats.routine)) AS routine_events,
    toFloat64(sum(template_stats.unsure)) AS unsure_events
FROM template_stats
WHERE t >= toDateTime({from:UInt32}, 'UTC') AND t < toDateTime({until:UInt32}, 'UTC')
GROUP BY template_id
