ALTER TABLE template_totals_mv MODIFY QUERY
SELECT
    arrival,
    source,
    template_id,
    skeleton,
    sum(template_stats.events) AS events,
    sum(template_stats.routine) AS routine,
    sum(template_stats.unsure) AS unsure,
    sum(template_stats.confidence_sum) AS confidence_sum,
    max(template_stats.model_version) AS model_version,
    sum(template_stats.debug) AS debug,
    sum(template_stats.info) AS info,
    sum(template_stats.warning) AS warning,
    sum(template_stats.error) AS error,
    sum(template_stats.critical) AS critical,
    sum(template_stats.p1) AS p1,
    sum(template_stats.p2) AS p2,
    sum(template_stats.p3) AS p3,
    sum(template_stats.p4) AS p4,
    min(template_stats.first_ts) AS first_ts,
    max(template_stats.last_ts) AS last_ts
FROM template_stats
GROUP BY arrival, source, template_id, skeleton
