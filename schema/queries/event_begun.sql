-- Counts the events of a time range: those that began in it, and those that began before and are repeated in it.
-- In whole hours only events of the templates in hour_templates are counted. The SQL of the conditions is put in from fixed fragments.
-- params: start_ms Int64, to_ms Int64, from_ms Int64 (no event of the range began before), arrived_ms Int64 (none of them arrived before), hours_from UInt32, hours_until UInt32 (whole hours, seconds since 1970), hour_templates Array(UInt64)
-- rows:   events
SELECT (
    SELECT count()
    FROM events
    WHERE (ts >= fromUnixTimestamp64Milli({start_ms:Int64}) AND ts < least(toDateTime64({hours_from:UInt32}, 3, 'UTC'), fromUnixTimestamp64Milli({to_ms:Int64}))
            OR ts >= toDateTime64({hours_until:UInt32}, 3, 'UTC') AND ts < fromUnixTimestamp64Milli({to_ms:Int64}))
        AND received_at >= fromUnixTimestamp64Milli({arrived_ms:Int64})
        /*conditions*/
) + (
    SELECT count()
    FROM events
    WHERE ts >= toDateTime64({hours_from:UInt32}, 3, 'UTC') AND ts < toDateTime64({hours_until:UInt32}, 3, 'UTC')
        AND received_at >= fromUnixTimestamp64Milli({arrived_ms:Int64})
        AND template_id IN {hour_templates:Array(UInt64)}
        /*conditions*/
) + (
    SELECT count()
    FROM events
    WHERE ts >= fromUnixTimestamp64Milli({from_ms:Int64}) AND ts < fromUnixTimestamp64Milli({start_ms:Int64})
        AND received_at >= fromUnixTimestamp64Milli({arrived_ms:Int64})
        /*conditions*/
        /*repeated*/
) AS events
