-- Counts the events of the templates whose occurrences in whole hours all have the wanted severities and priorities.
-- params: hours_from UInt32, hours_until UInt32, sources Array(String), template_ids Array(UInt64), debug UInt8, info UInt8, warning UInt8, error UInt8, critical UInt8, p1 UInt8, p2 UInt8, p3 UInt8, p4 UInt8
-- rows:   events, mixed UInt64 (the templates of which only some have them)
-- Times are seconds since 1970; no source = any, no template = any; 1 = wanted, 0 = not.
SELECT
    sumIf(begun, by_severity = occurrences AND by_priority = occurrences) AS events,
    countIf(by_severity != 0 AND by_priority != 0 AND (by_severity != occurrences OR by_priority != occurrences)) AS mixed
FROM (
    SELECT
        template_id,
        sum(template_stats.events) AS begun,
        sum(debug + info + warning + error + critical) AS occurrences,
        sum(debug * {debug:UInt8} + info * {info:UInt8} + warning * {warning:UInt8} + error * {error:UInt8}
            + critical * {critical:UInt8}) AS by_severity,
        sum(p1 * {p1:UInt8} + p2 * {p2:UInt8} + p3 * {p3:UInt8} + p4 * {p4:UInt8}) AS by_priority
    FROM template_stats
    WHERE t >= toDateTime({hours_from:UInt32}, 'UTC') AND t < toDateTime({hours_until:UInt32}, 'UTC')
        AND (empty({sources:Array(String)}) OR source IN {sources:Array(String)})
        AND (empty({template_ids:Array(UInt64)}) OR template_id IN {template_ids:Array(UInt64)})
    GROUP BY template_id
)
