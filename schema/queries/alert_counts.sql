-- Events of conditions by slots of a time, that of their arrival or their own, and by groups. The fragments come from a closed table.
-- params: from_ms Int64, to_ms Int64, oldest_ms Int64, max_age_s UInt32
-- rows:   slot, group_values, counts
SELECT
    /*slot*/ AS slot,
    /*groups*/ AS group_values,
    arrayFilter(c -> c.2 > 0, [/*counts*/]) AS counts
FROM events
WHERE /*time*/ >= fromUnixTimestamp64Milli({from_ms:Int64}) AND /*time*/ < fromUnixTimestamp64Milli({to_ms:Int64})
    AND ts >= fromUnixTimestamp64Milli({oldest_ms:Int64}) AND ts >= received_at - toIntervalSecond({max_age_s:UInt32})
    AND /*stored*/
GROUP BY slot, group_values
HAVING notEmpty(counts)
LIMIT 200001
