-- Transitions whose notices may not have been sent, after a position, oldest first: those of the
-- last day, and those of alerts with a notice that is held back.
-- params: after_ms Int64, after_id String, limit UInt32
-- rows:   id, at_ms, doc
SELECT id, toUnixTimestamp64Milli(max(at)) AS at_ms, any(alert_log.doc) AS doc
FROM alert_log
WHERE JSONLength(alert_log.doc, 'channels') + JSONLength(alert_log.doc, 'formerChannels') > 0
    AND (at > now64(3) - INTERVAL 1 DAY OR JSONExtractString(alert_log.doc, 'alertId') IN
    (
        SELECT alert_id FROM alert_deliveries
        WHERE notice_id IN (SELECT notice_id FROM alert_deliveries WHERE outcome = 'held')
        GROUP BY alert_id, notice_id
        HAVING argMax(outcome, (attempt, alert_deliveries.at)) = 'held'
    ))
GROUP BY id
HAVING (at_ms, id) > ({after_ms:Int64}, {after_id:String})
ORDER BY at_ms, id
LIMIT {limit:UInt32}
