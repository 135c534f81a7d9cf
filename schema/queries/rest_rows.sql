-- The occurrences at both ends of a time range, read from the events, where the rollups are too
-- coarse or some events are dropped: to add, or to subtract where the rollups count more than the
-- range. The SQL of conditions and expressions is put in from fixed fragments.
-- params: first_from_ms Int64, first_to_ms Int64 (before), last_from_ms Int64, last_to_ms Int64 (after), first_sign Int8, last_sign Int8 (1 or -1), window_ms Int64 (events are repeated for so long after they begin), arrived_ms Int64 (no event of the range arrived before)
-- rows:   at, occurrences, begun (0), k0
SELECT events.ts AS at, if(at < fromUnixTimestamp64Milli({first_to_ms:Int64}), {first_sign:Int8}, {last_sign:Int8}) * toInt64(events.n) AS occurrences, 0 AS begun, /*value*/ AS k0
FROM events
WHERE (ts >= fromUnixTimestamp64Milli({first_from_ms:Int64}) AND ts < fromUnixTimestamp64Milli({first_to_ms:Int64})
        OR ts >= fromUnixTimestamp64Milli({last_from_ms:Int64}) AND ts < fromUnixTimestamp64Milli({last_to_ms:Int64}))
    AND indexHint(received_at >= fromUnixTimestamp64Milli({arrived_ms:Int64}))
    /*conditions*/
UNION ALL
SELECT
    greatest(toDateTime64(repeats.t, 3, 'UTC'), matching.ts) AS at,
    if(at < fromUnixTimestamp64Milli({first_to_ms:Int64}), {first_sign:Int8}, {last_sign:Int8}) * toInt64(repeats.repeated) AS occurrences, 0 AS begun, k0
FROM (
    SELECT id, ts, /*value*/ AS k0
    FROM events
    WHERE (ts >= fromUnixTimestamp64Milli(greatest(0, {first_from_ms:Int64} - {window_ms:Int64})) AND ts < fromUnixTimestamp64Milli({first_to_ms:Int64})
            OR ts >= fromUnixTimestamp64Milli(greatest(0, {last_from_ms:Int64} - {window_ms:Int64})) AND ts < fromUnixTimestamp64Milli({last_to_ms:Int64}))
        AND indexHint(received_at >= fromUnixTimestamp64Milli({arrived_ms:Int64}))
        /*conditions*/
) AS matching
INNER JOIN (
    SELECT id, t, sum(event_occurrences.n) AS repeated
    FROM event_occurrences
    WHERE arrival >= toDate(fromUnixTimestamp64Milli(greatest(0, {arrived_ms:Int64} - 86400000)))
        AND (t >= toDateTime(intDiv({first_from_ms:Int64}, 1000), 'UTC') AND t < toDateTime(intDiv({first_to_ms:Int64} + 999, 1000), 'UTC')
            OR t >= toDateTime(intDiv({last_from_ms:Int64}, 1000), 'UTC') AND t < toDateTime(intDiv({last_to_ms:Int64} + 999, 1000), 'UTC'))
    GROUP BY id, t
    HAVING repeated != 0
) AS repeats ON matching.id = repeats.id
WHERE at >= fromUnixTimestamp64Milli({first_from_ms:Int64}) AND at < fromUnixTimestamp64Milli({first_to_ms:Int64})
    OR at >= fromUnixTimestamp64Milli({last_from_ms:Int64}) AND at < fromUnixTimestamp64Milli({last_to_ms:Int64})
