-- The transitions of a rule, newest first.
-- params: rule_id String, before_ms Int64, before_id String, limit UInt32
-- rows:   id, at_ms, doc
SELECT id, toUnixTimestamp64Milli(max(at)) AS at_ms, any(doc) AS doc
FROM alert_log
WHERE rule_id = {rule_id:String}
GROUP BY id
HAVING (at_ms, id) < ({before_ms:Int64}, {before_id:String})
ORDER BY at_ms DESC, id DESC
LIMIT {limit:UInt32}
