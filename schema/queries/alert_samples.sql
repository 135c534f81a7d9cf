-- The newest events of a condition that arrived in a range. The fragment comes from a closed table.
-- params: from_ms Int64, to_ms Int64, oldest_ms Int64
-- rows:   at_ms, source, host, severity, message
SELECT
    toUnixTimestamp64Milli(ts) AS at_ms, toString(events.source) AS source, toString(events.host) AS host,
    toString(events.severity) AS severity, substringUTF8(events.message, 1, 300) AS message
FROM events
WHERE received_at >= fromUnixTimestamp64Milli({from_ms:Int64}) AND received_at < fromUnixTimestamp64Milli({to_ms:Int64})
    AND ts >= fromUnixTimestamp64Milli({oldest_ms:Int64}) AND ts >= received_at - INTERVAL 1 HOUR
    AND /*condition*/
ORDER BY ts DESC
LIMIT 3
