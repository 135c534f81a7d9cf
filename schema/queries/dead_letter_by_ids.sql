-- Some dead letters, oldest first.
-- params: ids Array(UInt64), limit UInt32
-- rows:   id, received_ms, protocol, source, key_id, reason, detail, line, raw
SELECT id, toUnixTimestamp64Milli(received_at) AS received_ms, protocol, source, key_id, reason, detail, line, raw
FROM dead_letters
WHERE id IN {ids:Array(UInt64)}
ORDER BY dead_letters.received_at, dead_letters.id
LIMIT {limit:UInt32}
