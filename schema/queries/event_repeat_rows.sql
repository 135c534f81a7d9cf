-- The repeats of a time range, each at its second, or at the time of its event if both are in the
-- same second. The SQL of conditions and expressions is put in from fixed fragments.
-- params: start_ms Int64, to_ms Int64, arrived_ms Int64 (no event of the range arrived before), from_ms Int64 (none began before)
-- rows:   at, occurrences, begun (0, because the events are counted by event_begun_rows), k0, k1 … (the expressions)
SELECT greatest(toDateTime64(repeats.t, 3, 'UTC'), matching.ts) AS at, toInt64(repeats.repeated) AS occurrences, 0 AS begun/*names*/
FROM (
    SELECT id, ts/*expressions*/
    FROM events
    WHERE ts >= fromUnixTimestamp64Milli({from_ms:Int64}) AND ts < fromUnixTimestamp64Milli({to_ms:Int64})
        AND indexHint(received_at >= fromUnixTimestamp64Milli({arrived_ms:Int64}))
        /*conditions*/
) AS matching
INNER JOIN (
    SELECT id, t, sum(event_occurrences.n) AS repeated
    FROM event_occurrences
    WHERE arrival >= toDate(fromUnixTimestamp64Milli(greatest(0, {arrived_ms:Int64} - 86400000)))
        AND t >= toDateTime(intDiv({start_ms:Int64}, 1000), 'UTC') AND t < toDateTime(intDiv({to_ms:Int64} + 999, 1000), 'UTC')
    GROUP BY id, t
    HAVING repeated != 0
) AS repeats ON matching.id = repeats.id
WHERE at >= fromUnixTimestamp64Milli({start_ms:Int64}) AND at < fromUnixTimestamp64Milli({to_ms:Int64})
