-- The audit trail, newest first, after a position of the list.
-- params: actions Array(String), actors Array(String), before_seq UInt64, before_id String, limit UInt32
-- rows:   seq, id, at_ms, actor_id, action, target, outcome, ip, detail
SELECT seq, id, toUnixTimestamp64Milli(at) AS at_ms, actor_id, action, target, outcome, ip, detail
FROM audit
WHERE (seq, id) < ({before_seq:UInt64}, {before_id:String})
    AND (empty({actions:Array(String)}) OR action IN {actions:Array(String)})
    AND (empty({actors:Array(String)}) OR actor_id IN {actors:Array(String)})
ORDER BY seq DESC, id DESC
LIMIT {limit:UInt32}
