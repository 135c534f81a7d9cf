-- How notices went: the last attempt of each.
-- params: ids Array(String)
-- rows:   notice_id, attempts, at_ms, outcome, status, error
SELECT
    notice_id, max(attempt) AS attempts, toUnixTimestamp64Milli(max(at)) AS at_ms, argMax(alert_deliveries.outcome, attempt) AS outcome,
    argMax(alert_deliveries.status, attempt) AS status, argMax(alert_deliveries.error, attempt) AS error
FROM alert_deliveries
WHERE notice_id IN {ids:Array(String)}
GROUP BY notice_id
