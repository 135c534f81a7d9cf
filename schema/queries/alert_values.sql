-- A metric of an attribute over the occurrences that arrived in the windows whose last slot is in a range, by that slot and by groups.
-- The fragments come from a closed table.
-- params: from_ms Int64, to_ms Int64, max_age_s UInt32, every_s UInt32, first_slot UInt32, last_slot UInt32, slots UInt32
-- rows:   slot, group_values, value
SELECT slot, group_values, toFloat64(/*metric*/) AS value
FROM
(
    SELECT intDiv(toUnixTimestamp(received_at), {every_s:UInt32}) AS own_slot, /*groups*/ AS group_values, /*number*/ AS number, toInt64(n) AS occurrences
    FROM events
    WHERE received_at >= fromUnixTimestamp64Milli({from_ms:Int64}) AND received_at < fromUnixTimestamp64Milli({to_ms:Int64})
        AND ts >= fromUnixTimestamp64Milli({from_ms:Int64}) - toIntervalSecond({max_age_s:UInt32})
        AND ts >= received_at - toIntervalSecond({max_age_s:UInt32}) AND /*condition*/
    UNION ALL
    SELECT intDiv(toUnixTimestamp(arrived), {every_s:UInt32}) AS own_slot, /*groups*/ AS group_values, /*number*/ AS number, repeats AS occurrences
    FROM events
    INNER JOIN (SELECT arrived, repeated_id, sum(repeated_n) AS repeats FROM (/*repeats*/) GROUP BY arrived, repeated_id) AS repeated
        ON events.id = repeated.repeated_id
    WHERE events.ts >= fromUnixTimestamp64Milli({from_ms:Int64}) - INTERVAL 1 DAY - toIntervalSecond({max_age_s:UInt32})
        AND events.id IN (SELECT repeated_id FROM (/*repeats*/)) AND /*condition*/
)
ARRAY JOIN range(toUInt32(greatest(own_slot, {first_slot:UInt32})), toUInt32(least(own_slot + {slots:UInt32}, {last_slot:UInt32} + 1))) AS slot
WHERE occurrences > 0
GROUP BY slot, group_values
HAVING isNotNull(value) AND isFinite(value)
LIMIT 200001
