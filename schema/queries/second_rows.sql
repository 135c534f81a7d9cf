-- The occurrences of the rest of a second whose events began in it; the repeats of others have the beginning of the second.
-- Conditions and expressions come from a closed table of fragments.
-- params: sign Int64 (1 or -1), start_ms Int64, to_ms Int64 (the end of the second)
-- rows:   at, occurrences, begun (0), k0
SELECT events.ts AS at, {sign:Int64} * events.n AS occurrences, 0 AS begun, /*value*/ AS k0
FROM events
WHERE ts >= fromUnixTimestamp64Milli({start_ms:Int64}) AND ts < fromUnixTimestamp64Milli({to_ms:Int64})
    /*conditions*/
UNION ALL
SELECT matching.ts AS at, {sign:Int64} * repeats.n AS occurrences, 0 AS begun, k0
FROM event_occurrences AS repeats
INNER JOIN (
    SELECT id, ts, /*value*/ AS k0
    FROM events
    WHERE ts >= fromUnixTimestamp64Milli({start_ms:Int64}) AND ts < fromUnixTimestamp64Milli({to_ms:Int64})
        /*conditions*/
) AS matching ON repeats.id = matching.id
WHERE repeats.id IN (
        SELECT id
        FROM events
        WHERE ts >= fromUnixTimestamp64Milli({start_ms:Int64}) AND ts < fromUnixTimestamp64Milli({to_ms:Int64})
            /*conditions*/
    )
    AND repeats.t = toDateTime(intDiv({start_ms:Int64}, 1000), 'UTC')
