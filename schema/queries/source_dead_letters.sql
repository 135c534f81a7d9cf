-- Dead letters of sources, by arrival.
-- params: sources Array(String), from_ms Int64, to_ms Int64
-- rows:   name String, dead
SELECT toString(source) AS name, count() AS dead
FROM dead_letters
WHERE source IN {sources:Array(String)}
    AND received_at >= fromUnixTimestamp64Milli({from_ms:Int64}) AND received_at <= fromUnixTimestamp64Milli({to_ms:Int64})
GROUP BY name
