-- The last attempt to send each of some notices.
-- params: ids Array(String)
-- rows:   notice_id, attempts, at_ms, outcome, status, error
SELECT
    notice_id, max(attempt) AS attempts, toUnixTimestamp64Milli(max(alert_deliveries.at)) AS at_ms,
    argMax(alert_deliveries.outcome, (attempt, alert_deliveries.at)) AS outcome,
    argMax(alert_deliveries.status, (attempt, alert_deliveries.at)) AS status,
    argMax(alert_deliveries.error, (attempt, alert_deliveries.at)) AS error
FROM alert_deliveries
WHERE notice_id IN {ids:Array(String)}
GROUP BY notice_id
