-- The events of a time range: those that began in it, and those that began before and are repeated in it; ids ascend.
-- The SQL of the conditions is put in from fixed fragments.
-- params: start_ms Int64, to_ms Int64, from_ms Int64 (no event of the range began before), arrived_ms Int64 (none of them arrived before), limit UInt32
-- rows:   id UInt64
SELECT id
FROM events
WHERE ts >= fromUnixTimestamp64Milli({from_ms:Int64}) AND ts < fromUnixTimestamp64Milli({to_ms:Int64})
    AND (ts >= fromUnixTimestamp64Milli({start_ms:Int64}) OR /*repeated*/)
    AND indexHint(received_at >= fromUnixTimestamp64Milli({arrived_ms:Int64}))
    /*conditions*/
ORDER BY id
LIMIT {limit:UInt32}
