-- The occurrences in the seconds in which a time range begins and ends: those after its start, to
-- add, and those after its end, to subtract. Repeats of other events have the time of the beginning
-- of the second. The SQL of conditions and expressions is put in from fixed fragments.
-- params: first_from_ms Int64, first_to_ms Int64 (from the start of the range to the end of that second), last_from_ms Int64, last_to_ms Int64 (from the end of the range to the end of that second)
-- rows:   at, occurrences, begun (0), k0
SELECT
    matching.ts AS at, if(matching.ts < fromUnixTimestamp64Milli({first_to_ms:Int64}), 1, -1) * (matching.n + repeats.n) AS occurrences,
    0 AS begun, matching.value AS k0
FROM (
    SELECT id, ts, toInt64(events.n) AS n, /*value*/ AS value
    FROM events
    WHERE (ts >= fromUnixTimestamp64Milli({first_from_ms:Int64}) AND ts < fromUnixTimestamp64Milli({first_to_ms:Int64})
            OR ts >= fromUnixTimestamp64Milli({last_from_ms:Int64}) AND ts < fromUnixTimestamp64Milli({last_to_ms:Int64}))
        /*conditions*/
) AS matching
LEFT JOIN (
    SELECT id, t, toInt64(sum(event_occurrences.n)) AS n
    FROM event_occurrences
    WHERE id IN (
            SELECT id
            FROM events
            WHERE (ts >= fromUnixTimestamp64Milli({first_from_ms:Int64}) AND ts < fromUnixTimestamp64Milli({first_to_ms:Int64})
                    OR ts >= fromUnixTimestamp64Milli({last_from_ms:Int64}) AND ts < fromUnixTimestamp64Milli({last_to_ms:Int64}))
                /*conditions*/
        )
        AND t IN (toDateTime(intDiv({first_from_ms:Int64}, 1000), 'UTC'), toDateTime(intDiv({last_from_ms:Int64}, 1000), 'UTC'))
    GROUP BY id, t
) AS repeats ON matching.id = repeats.id AND toDateTime(matching.ts, 'UTC') = repeats.t
