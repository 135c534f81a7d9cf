-- A metric of an attribute over the occurrences that arrived in a range, by groups. The fragments come from a closed table.
-- params: from_ms Int64, to_ms Int64, max_age_s UInt32
-- rows:   group_values, value
WITH
    if(received_at >= fromUnixTimestamp64Milli({from_ms:Int64}) AND received_at < fromUnixTimestamp64Milli({to_ms:Int64})
        AND ts >= received_at - toIntervalSecond({max_age_s:UInt32}), n, 0) + repeats AS occurrences
SELECT /*groups*/ AS group_values, toFloat64(/*metric*/) AS value
FROM events
LEFT JOIN
(
    SELECT repeat_arrivals.id AS repeated_id, sum(repeat_arrivals.n) AS repeats
    FROM repeat_arrivals
    WHERE arrived >= toDateTime(intDiv({from_ms:Int64}, 1000), 'UTC') AND arrived < toDateTime(intDiv({to_ms:Int64}, 1000), 'UTC')
    GROUP BY repeated_id
) AS repeated ON events.id = repeated.repeated_id
WHERE events.ts >= fromUnixTimestamp64Milli({from_ms:Int64}) - INTERVAL 1 DAY - toIntervalSecond({max_age_s:UInt32})
    AND (received_at >= fromUnixTimestamp64Milli({from_ms:Int64}) AND received_at < fromUnixTimestamp64Milli({to_ms:Int64})
        OR events.id IN (
            SELECT repeat_arrivals.id FROM repeat_arrivals
            WHERE arrived >= toDateTime(intDiv({from_ms:Int64}, 1000), 'UTC') AND arrived < toDateTime(intDiv({to_ms:Int64}, 1000), 'UTC')))
    AND /*condition*/ AND occurrences > 0
GROUP BY group_values
HAVING isNotNull(value) AND isFinite(value)
LIMIT 200001
