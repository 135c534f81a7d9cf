-- The audit trail, oldest first, after a position.
-- params: after_seq UInt64, after_id String, limit UInt32
-- rows:   seq, id, at_ms, actor_id, action, target, outcome, ip, detail
SELECT seq, id, toUnixTimestamp64Milli(at) AS at_ms, actor_id, action, target, outcome, ip, detail
FROM audit
WHERE (seq, id) > ({after_seq:UInt64}, {after_id:String})
ORDER BY seq, id
LIMIT {limit:UInt32}
