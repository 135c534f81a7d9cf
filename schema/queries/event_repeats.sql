-- The repeats of some events by second and priority.
-- params: ids Array(UInt64), arrived_ms Int64 (none of it arrived before)
-- rows:   id, repeats, last_ms
SELECT id, sum(event_occurrences.n) AS repeats, toUnixTimestamp64Milli(max(event_occurrences.last_ts)) AS last_ms
FROM event_occurrences
WHERE id IN {ids:Array(UInt64)} AND arrival >= toDate(fromUnixTimestamp64Milli({arrived_ms:Int64}))
GROUP BY id
