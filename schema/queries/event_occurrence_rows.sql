-- The occurrences of a time range: first occurrences, repeats, and events that began before it and are repeated in it.
-- Conditions and expressions come from a closed table of fragments.
-- params: start_ms Int64, to_ms Int64, arrived_ms Int64 (none of them arrived before), from_ms Int64 (no event of the range began before)
-- rows:   at, occurrences, begun (1 = an event that was not counted yet), and the expressions
SELECT events.ts AS at, toInt64(events.n) AS occurrences, 1 AS begun/*expressions*/
FROM events
WHERE ts >= fromUnixTimestamp64Milli({start_ms:Int64}) AND ts < fromUnixTimestamp64Milli({to_ms:Int64})
    AND received_at >= fromUnixTimestamp64Milli({arrived_ms:Int64})
    /*conditions*/
UNION ALL
SELECT greatest(toDateTime64(repeats.t, 3, 'UTC'), matching.ts) AS at, toInt64(repeats.repeated) AS occurrences, 0 AS begun/*names*/
FROM (
    SELECT id, t, sum(event_occurrences.n) AS repeated
    FROM event_occurrences
    WHERE arrival >= toDate(fromUnixTimestamp64Milli(greatest(0, {arrived_ms:Int64} - 86400000)))
        AND t >= toDateTime(intDiv({start_ms:Int64}, 1000), 'UTC') AND t < toDateTime(intDiv({to_ms:Int64} + 999, 1000), 'UTC')
    GROUP BY id, t
    HAVING repeated != 0
) AS repeats
INNER JOIN (
    SELECT id, ts/*expressions*/
    FROM events
    WHERE ts >= fromUnixTimestamp64Milli({from_ms:Int64}) AND ts < fromUnixTimestamp64Milli({to_ms:Int64})
        AND received_at >= fromUnixTimestamp64Milli({arrived_ms:Int64})
        /*conditions*/
        AND id IN (
            SELECT id
            FROM event_occurrences
            WHERE arrival >= toDate(fromUnixTimestamp64Milli(greatest(0, {arrived_ms:Int64} - 86400000)))
                AND t >= toDateTime(intDiv({start_ms:Int64}, 1000), 'UTC') AND t < toDateTime(intDiv({to_ms:Int64} + 999, 1000), 'UTC')
        )
) AS matching ON repeats.id = matching.id
WHERE at >= fromUnixTimestamp64Milli({start_ms:Int64}) AND at < fromUnixTimestamp64Milli({to_ms:Int64})
UNION ALL
SELECT fromUnixTimestamp64Milli({start_ms:Int64}) AS at, 0 AS occurrences, 1 AS begun/*expressions*/
FROM events
WHERE ts >= fromUnixTimestamp64Milli({from_ms:Int64}) AND ts < fromUnixTimestamp64Milli({start_ms:Int64})
    AND received_at >= fromUnixTimestamp64Milli({arrived_ms:Int64})
    /*conditions*/
    /*repeated*/
