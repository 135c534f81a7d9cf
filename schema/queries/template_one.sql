-- One template with those merged into it.
-- params: id UInt64, ids Array(UInt64)
-- rows:   template String (16 hex digits), source, events, confidence_sum, debug, info, warning, error, critical, p1,
--         p2, p3, p4, model_version, first_ms, last_ms
SELECT
    leftPad(lower(hex({id:UInt64})), 16, '0') AS template,
    any(template_totals.source) AS source,
    sum(template_totals.events) AS events,
    sum(template_totals.confidence_sum) AS confidence_sum,
    sum(template_totals.debug) AS debug,
    sum(template_totals.info) AS info,
    sum(template_totals.warning) AS warning,
    sum(template_totals.error) AS error,
    sum(template_totals.critical) AS critical,
    sum(template_totals.p1) AS p1,
    sum(template_totals.p2) AS p2,
    sum(template_totals.p3) AS p3,
    sum(template_totals.p4) AS p4,
    max(template_totals.model_version) AS model_version,
    toUnixTimestamp64Milli(min(first_ts)) AS first_ms,
    toUnixTimestamp64Milli(max(last_ts)) AS last_ms
FROM template_totals
WHERE template_id IN {ids:Array(UInt64)}
HAVING sum(template_totals.p1 + template_totals.p2 + template_totals.p3 + template_totals.p4) > 0
