-- The newest entry of the audit trail in the chain of one instance.
-- params: writer String
-- rows:   seq, id, at_ms, actor_id, action, target, outcome, ip, detail
SELECT seq, id, toUnixTimestamp64Milli(at) AS at_ms, actor_id, action, target, outcome, ip, detail
FROM audit
WHERE JSONExtractString(detail, 'audit_link', 'writer') = {writer:String}
ORDER BY seq DESC, id DESC
LIMIT 1
