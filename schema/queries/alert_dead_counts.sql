-- Dead letters by slots of their arrival, all together or by source: of each slot the sources with the most.
-- params: from_ms Int64, to_ms Int64, every_s UInt32, by_source Bool, max_sources UInt32, max_rows UInt32
-- rows:   slot, source, dead
SELECT
    intDiv(toUnixTimestamp(received_at), {every_s:UInt32}) AS slot,
    if({by_source:Bool}, toString(source), '') AS source,
    count() AS dead
FROM dead_letters
WHERE received_at >= fromUnixTimestamp64Milli({from_ms:Int64}) AND received_at < fromUnixTimestamp64Milli({to_ms:Int64})
GROUP BY slot, source
ORDER BY dead DESC
LIMIT {max_sources:UInt32} BY slot
LIMIT {max_rows:UInt32}
