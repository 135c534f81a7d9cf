-- The templates with the most occurrences, or those that were first seen last; a merged template counts for its target.
-- params: merged Array(UInt64), into Array(UInt64), ids Array(UInt64) (empty = any), sources Array(String) (empty = any), by_first_seen UInt8, from_ms Int64, until_ms Int64 (when first seen), limit UInt32
-- rows:   template String (16 hex digits), source, events, confidence_sum, debug, info, warning, error, critical, p1,
--         p2, p3, p4, model_version, first_ms, last_ms
SELECT
    leftPad(lower(hex(transform(template_id, {merged:Array(UInt64)}, {into:Array(UInt64)}, template_id))), 16, '0') AS template,
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
WHERE template_id != 0 AND (empty({ids:Array(UInt64)}) OR template_id IN {ids:Array(UInt64)})
    AND (empty({sources:Array(String)}) OR template_totals.source IN {sources:Array(String)})
GROUP BY template
HAVING sum(template_totals.p1 + template_totals.p2 + template_totals.p3 + template_totals.p4) > 0
    AND first_ms >= {from_ms:Int64} AND first_ms < {until_ms:Int64}
ORDER BY if({by_first_seen:UInt8} = 1, first_ms, toInt64(sum(template_totals.p1 + template_totals.p2 + template_totals.p3 + template_totals.p4))) DESC, template
LIMIT {limit:UInt32}
