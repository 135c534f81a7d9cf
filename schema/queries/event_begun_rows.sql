-- The events of a time range: those that began in it, and, counted at its start, those that began
-- before and are repeated in it. Events that began in some whole hours are left out. The SQL of
-- conditions and expressions is put in from fixed fragments.
-- params: start_ms Int64, to_ms Int64, arrived_ms Int64 (none of them arrived before), from_ms Int64 (no event of the range began before), hours_from UInt32, hours_until UInt32 (seconds since 1970; from 2106 on for no hours)
-- rows:   at, occurrences (0 for an event that began before the range), begun (1), k0, k1 … (the expressions)
SELECT events.ts AS at, toInt64(events.n) AS occurrences, 1 AS begun/*expressions*/
FROM events
WHERE (ts >= fromUnixTimestamp64Milli({start_ms:Int64}) AND ts < least(toDateTime64({hours_from:UInt32}, 3, 'UTC'), fromUnixTimestamp64Milli({to_ms:Int64}))
        OR ts >= toDateTime64({hours_until:UInt32}, 3, 'UTC') AND ts < fromUnixTimestamp64Milli({to_ms:Int64}))
    AND indexHint(received_at >= fromUnixTimestamp64Milli({arrived_ms:Int64}))
    /*conditions*/
UNION ALL
SELECT fromUnixTimestamp64Milli({start_ms:Int64}) AS at, 0 AS occurrences, 1 AS begun/*expressions*/
FROM events
WHERE ts >= fromUnixTimestamp64Milli({from_ms:Int64}) AND ts < fromUnixTimestamp64Milli({start_ms:Int64})
    AND indexHint(received_at >= fromUnixTimestamp64Milli({arrived_ms:Int64}))
    /*conditions*/
    /*repeated*/
