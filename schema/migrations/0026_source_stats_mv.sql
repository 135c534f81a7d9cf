CREATE MATERIALIZED VIEW IF NOT EXISTS source_stats_mv TO source_stats AS
SELECT
    arrival,
    source,
    sum(template_stats.events) AS events,
    sum(debug + info + warning + error + critical) AS occurrences,
    sum(error + critical) AS errors,
    min(template_stats.first_ts) AS first_ts,
    max(template_stats.last_ts) AS last_ts
FROM template_stats
GROUP BY arrival, source
