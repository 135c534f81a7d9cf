-- The transitions of the last day that channels may not have been told of, after one, oldest first.
-- params: after_ms Int64, after_id String, limit UInt32
-- rows:   id, at_ms, doc
SELECT id, toUnixTimestamp64Milli(max(at)) AS at_ms, any(alert_log.doc) AS doc
FROM alert_log
WHERE at > now64(3) - INTERVAL 1 DAY AND JSONLength(alert_log.doc, 'channels') > 0
GROUP BY id
HAVING (at_ms, id) > ({after_ms:Int64}, {after_id:String})
ORDER BY at_ms, id
LIMIT {limit:UInt32}
