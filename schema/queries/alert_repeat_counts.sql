-- Repeats of the events of conditions by slots of their arrival and by groups. The fragments come from a closed table.
-- params: from_ms Int64, to_ms Int64, oldest_ms Int64, most UInt32 (the most rows that are read)
-- rows:   slot, group_values, counts
SELECT
    /*slot*/ AS slot,
    /*groups*/ AS group_values,
    arrayFilter(c -> c.2 > 0, [/*counts*/]) AS counts
FROM events
INNER JOIN
(
    SELECT arrived, repeat_arrivals.id AS repeated_id, sum(repeat_arrivals.n) AS repeats
    FROM repeat_arrivals
    WHERE arrived >= toDateTime(intDiv({from_ms:Int64}, 1000), 'UTC') AND arrived < toDateTime(intDiv({to_ms:Int64}, 1000), 'UTC')
    GROUP BY arrived, repeated_id
) AS repeated ON events.id = repeated.repeated_id
WHERE events.ts >= fromUnixTimestamp64Milli({oldest_ms:Int64})
    AND events.id IN (
        SELECT repeat_arrivals.id FROM repeat_arrivals
        WHERE arrived >= toDateTime(intDiv({from_ms:Int64}, 1000), 'UTC') AND arrived < toDateTime(intDiv({to_ms:Int64}, 1000), 'UTC'))
GROUP BY slot, group_values
HAVING notEmpty(counts)
LIMIT {most:UInt32}
