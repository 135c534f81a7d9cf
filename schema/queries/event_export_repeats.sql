-- The repeats of the events of a time range, as a part of the statement that exports them.
-- params: range_to_ms Int64, range_from_ms Int64, arrived_ms Int64 (none of them arrived before), from_ms Int64, to_ms Int64, limit UInt32
-- rows:   repeats and repeats_cut as event_repeats has them, last_ts (of all), by repeated_id
LEFT ANY JOIN (
    SELECT
        id AS repeated_id,
        sumIf(event_occurrences.n, t < toDateTime(intDiv({range_to_ms:Int64} + 999, 1000), 'UTC') AND t >= toDateTime(intDiv({range_from_ms:Int64} + 999, 1000), 'UTC')) AS repeats,
        sumIf(event_occurrences.n, t < toDateTime(intDiv({range_to_ms:Int64} + 999, 1000), 'UTC') AND toUnixTimestamp(t) * 1000 < {range_from_ms:Int64} AND t >= toDateTime(intDiv({range_from_ms:Int64}, 1000), 'UTC')) AS repeats_cut,
        max(event_occurrences.last_ts) AS last_ts
    FROM event_occurrences
    WHERE arrival >= toDate(fromUnixTimestamp64Milli(greatest(0, {arrived_ms:Int64} - 86400000))) AND id IN (
        SELECT id
        FROM events
        WHERE ts >= fromUnixTimestamp64Milli({from_ms:Int64}) AND ts < fromUnixTimestamp64Milli({to_ms:Int64})
            AND indexHint(received_at >= fromUnixTimestamp64Milli({arrived_ms:Int64}))
            /*conditions*/
        ORDER BY events.ts /*order*/, events.id /*order*/
        LIMIT {limit:UInt32}
    )
    GROUP BY id
) AS repeated ON repeated.repeated_id = page.id
