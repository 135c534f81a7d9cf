-- Dead letters by slots of their arrival.
-- params: from_ms Int64, to_ms Int64, every_s UInt32
-- rows:   slot, source, dead
SELECT intDiv(toUnixTimestamp(received_at), {every_s:UInt32}) AS slot, toString(source) AS source, count() AS dead
FROM dead_letters
WHERE received_at >= fromUnixTimestamp64Milli({from_ms:Int64}) AND received_at < fromUnixTimestamp64Milli({to_ms:Int64})
GROUP BY slot, source
