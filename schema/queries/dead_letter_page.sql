-- Dead letters, newest first, after a position of the list.
-- params: reasons Array(String), sources Array(String), before_ms Int64, before_id UInt64, limit UInt32
-- rows:   id, received_ms, protocol, source, key_id, reason, detail, line, raw
SELECT id, toUnixTimestamp64Milli(received_at) AS received_ms, protocol, source, key_id, reason, detail, line, raw
FROM dead_letters
WHERE received_at <= fromUnixTimestamp64Milli({before_ms:Int64})
    AND (received_at, id) < (fromUnixTimestamp64Milli({before_ms:Int64}), {before_id:UInt64})
    AND (empty({reasons:Array(String)}) OR reason IN {reasons:Array(String)})
    AND (empty({sources:Array(String)}) OR source IN {sources:Array(String)})
ORDER BY dead_letters.received_at DESC, dead_letters.id DESC
LIMIT {limit:UInt32}
