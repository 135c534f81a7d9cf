-- Events by host in a span; a bounded read, for one anomaly at a time.
-- params: source String, severity String, template_ids Array(UInt64), from_ms Int64, to_ms Int64, limit UInt32
-- rows:   host ('' none), events
-- What is empty is any.
SELECT host, count() AS events
FROM events
WHERE ts >= fromUnixTimestamp64Milli({from_ms:Int64}) AND ts < fromUnixTimestamp64Milli({to_ms:Int64})
    AND ({source:String} = '' OR source = {source:String})
    AND ({severity:String} = '' OR toString(severity) = {severity:String})
    AND (empty({template_ids:Array(UInt64)}) OR template_id IN {template_ids:Array(UInt64)})
GROUP BY host
ORDER BY events DESC, host
LIMIT {limit:UInt32}
