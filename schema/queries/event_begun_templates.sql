-- The events of some templates that began in whole hours.
-- The SQL of conditions and expressions is put in from fixed fragments.
-- params: arrived_ms Int64 (none of them arrived before), hours_from UInt32, hours_until UInt32 (seconds since 1970), hour_templates Array(UInt64) (ClickHouse reads all rows for an empty list)
-- rows:   at, occurrences, begun (1)
SELECT events.ts AS at, toInt64(events.n) AS occurrences, 1 AS begun
FROM events
WHERE ts >= toDateTime64({hours_from:UInt32}, 3, 'UTC') AND ts < toDateTime64({hours_until:UInt32}, 3, 'UTC')
    AND indexHint(received_at >= fromUnixTimestamp64Milli({arrived_ms:Int64}))
    AND template_id IN {hour_templates:Array(UInt64)}
    /*conditions*/
