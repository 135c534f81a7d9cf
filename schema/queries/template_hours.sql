-- The newest hours of one template and those merged into it.
-- params: ids Array(UInt64), limit UInt32
-- rows:   bucket UInt32 (seconds since 1970), debug, info, warning, error, critical, p1, p2, p3, p4
SELECT
    toUnixTimestamp(t) AS bucket,
    sum(template_stats.debug) AS debug,
    sum(template_stats.info) AS info,
    sum(template_stats.warning) AS warning,
    sum(template_stats.error) AS error,
    sum(template_stats.critical) AS critical,
    sum(template_stats.p1) AS p1,
    sum(template_stats.p2) AS p2,
    sum(template_stats.p3) AS p3,
    sum(template_stats.p4) AS p4
FROM template_stats
WHERE template_id IN {ids:Array(UInt64)}
GROUP BY bucket
HAVING sum(template_stats.p1 + template_stats.p2 + template_stats.p3 + template_stats.p4) > 0
ORDER BY bucket DESC
LIMIT {limit:UInt32}
