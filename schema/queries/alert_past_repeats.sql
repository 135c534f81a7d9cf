-- Like alert_repeat_counts, but by the own time of a repeat, for times before the last two days.
-- params: from_ms Int64, to_ms Int64, oldest_ms Int64, most UInt32 (the most rows that are read)
-- rows:   slot, group_values, counts
SELECT
    /*slot*/ AS slot,
    /*groups*/ AS group_values,
    arrayFilter(c -> c.2 > 0, [/*counts*/]) AS counts
FROM events
INNER JOIN
(
    SELECT t AS arrived, event_occurrences.id AS repeated_id, sum(event_occurrences.n) AS repeats
    FROM event_occurrences
    WHERE t >= toDateTime(intDiv({from_ms:Int64}, 1000), 'UTC') AND t < toDateTime(intDiv({to_ms:Int64}, 1000), 'UTC')
        AND arrival >= toDate(intDiv({from_ms:Int64}, 1000), 'UTC') AND arrival <= toDate(intDiv({to_ms:Int64}, 1000), 'UTC') + 1
    GROUP BY arrived, repeated_id
) AS repeated ON events.id = repeated.repeated_id
WHERE events.ts >= fromUnixTimestamp64Milli({oldest_ms:Int64})
    AND events.id IN (
        SELECT event_occurrences.id FROM event_occurrences
        WHERE t >= toDateTime(intDiv({from_ms:Int64}, 1000), 'UTC') AND t < toDateTime(intDiv({to_ms:Int64}, 1000), 'UTC')
            AND arrival >= toDate(intDiv({from_ms:Int64}, 1000), 'UTC') AND arrival <= toDate(intDiv({to_ms:Int64}, 1000), 'UTC') + 1)
GROUP BY slot, group_values
HAVING notEmpty(counts)
LIMIT {most:UInt32}
