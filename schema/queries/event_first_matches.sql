-- Some of the events that match, in any order.
-- The SQL of the conditions is put in from fixed fragments.
-- params: from_ms Int64, to_ms Int64, arrived_ms Int64 (none of them arrived before), limit UInt32
-- rows:   id UInt64, ts_ms
SELECT id, toUnixTimestamp64Milli(ts) AS ts_ms
FROM events
WHERE ts >= fromUnixTimestamp64Milli({from_ms:Int64}) AND ts < fromUnixTimestamp64Milli({to_ms:Int64})
    AND indexHint(received_at >= fromUnixTimestamp64Milli({arrived_ms:Int64}))
    /*conditions*/
LIMIT {limit:UInt32}
