-- The occurrences of a time range, as event_begun_rows and event_repeat_rows have them, with the conditions evaluated once for each event.
-- The SQL of conditions and expressions is put in from fixed fragments.
-- params: start_ms Int64, to_ms Int64, from_ms Int64 (no event of the range began before), arrived_ms Int64 (none of them arrived before)
-- rows:   at, occurrences, begun (1 = an event that was not counted yet), and the expressions
SELECT one.1 AS at, one.2 AS occurrences, one.3 AS begun/*names*/
FROM (
    SELECT
        arrayFilter(
            r -> r.1 >= fromUnixTimestamp64Milli({start_ms:Int64}) AND r.1 < fromUnixTimestamp64Milli({to_ms:Int64}),
            arrayMap(r -> (greatest(toDateTime64(r.1, 3, 'UTC'), matching.began), toInt64(r.2), toUInt8(0)), repeats.list)
        ) AS later,
        arrayJoin(arrayConcat(
            multiIf(
                matching.began >= fromUnixTimestamp64Milli({start_ms:Int64}), [(matching.began, toInt64(matching.counted), toUInt8(1))],
                notEmpty(later), [(fromUnixTimestamp64Milli({start_ms:Int64}), toInt64(0), toUInt8(1))],
                []
            ),
            later
        )) AS one/*names*/
    FROM (
        SELECT id, ts AS began, events.n AS counted/*expressions*/
        FROM events
        WHERE ts >= fromUnixTimestamp64Milli({from_ms:Int64}) AND ts < fromUnixTimestamp64Milli({to_ms:Int64})
            AND indexHint(received_at >= fromUnixTimestamp64Milli({arrived_ms:Int64}))
            /*conditions*/
    ) AS matching
    ANY LEFT JOIN (
        SELECT id, groupArray((t, repeated)) AS list
        FROM (
            SELECT id, t, sum(event_occurrences.n) AS repeated
            FROM event_occurrences
            WHERE arrival >= toDate(fromUnixTimestamp64Milli(greatest(0, {arrived_ms:Int64} - 86400000)))
                AND t >= toDateTime(intDiv({start_ms:Int64}, 1000), 'UTC') AND t < toDateTime(intDiv({to_ms:Int64} + 999, 1000), 'UTC')
                /*repeats*/
            GROUP BY id, t
            HAVING repeated != 0
        )
        GROUP BY id
    ) AS repeats ON matching.id = repeats.id
)
