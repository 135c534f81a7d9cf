-- Counts events by conditions, by slots of their arrival or of their own time, and by groups. The
-- fragments come from a closed table. A row without counts says that events were repeated in the
-- range of arrivals; only then repeats are queried.
-- params: from_ms Int64, to_ms Int64, oldest_ms Int64, max_age_s UInt32, most UInt32 (the most rows that are read)
-- rows:   slot, group_values, counts
SELECT
    /*slot*/ AS slot,
    /*groups*/ AS group_values,
    arrayFilter(c -> c.2 > 0, [/*counts*/]) AS counts
FROM events
WHERE /*time*/ >= fromUnixTimestamp64Milli({from_ms:Int64}) AND /*time*/ < fromUnixTimestamp64Milli({to_ms:Int64})
    AND ts >= fromUnixTimestamp64Milli({oldest_ms:Int64}) AND ts >= received_at - toIntervalSecond({max_age_s:UInt32})
GROUP BY slot, group_values
HAVING notEmpty(counts)
LIMIT {most:UInt32}
UNION ALL
SELECT 0 AS slot, [] AS group_values, [] AS counts
FROM repeat_arrivals
WHERE arrived >= toDateTime(intDiv({from_ms:Int64}, 1000), 'UTC') AND arrived < toDateTime(intDiv({to_ms:Int64}, 1000), 'UTC')
LIMIT 1
