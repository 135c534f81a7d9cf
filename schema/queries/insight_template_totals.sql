-- Totals over all time of the templates that occurred since a time.
-- params: since UInt32 (seconds since 1970)
-- rows:   template String (16 hex digits), source, first_ms, last_ms, debug, info, warning, error, critical
SELECT
    leftPad(lower(hex(template_id)), 16, '0') AS template,
    any(source) AS source,
    toUnixTimestamp64Milli(min(first_ts)) AS first_ms,
    toUnixTimestamp64Milli(max(last_ts)) AS last_ms,
    sum(template_totals.debug) AS debug,
    sum(template_totals.info) AS info,
    sum(template_totals.warning) AS warning,
    sum(template_totals.error) AS error,
    sum(template_totals.critical) AS critical
FROM template_totals
WHERE template_id != 0
GROUP BY template_id
HAVING max(last_ts) >= toDateTime({since:UInt32}, 'UTC')
ORDER BY template_id
