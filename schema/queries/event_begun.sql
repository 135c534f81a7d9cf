-- Counts the events of a time range: those that began in it, and those that began before and are repeated in it.
-- The conditions come from a closed table of fragments; those of the whole hours are the filter's sources and templates.
-- params: start_ms Int64, to_ms Int64, from_ms Int64 (no event of the range began before), hours_from UInt32, hours_until UInt32 (whole hours that template_stats counts), sources Array(String), template_ids Array(UInt64)
-- rows:   events
-- Times of hours are seconds since 1970; no source = any, no template = any.
SELECT (
    SELECT count()
    FROM events
    WHERE (ts >= fromUnixTimestamp64Milli({start_ms:Int64}) AND ts < least(toDateTime64({hours_from:UInt32}, 3, 'UTC'), fromUnixTimestamp64Milli({to_ms:Int64}))
            OR ts >= toDateTime64({hours_until:UInt32}, 3, 'UTC') AND ts < fromUnixTimestamp64Milli({to_ms:Int64}))
        /*conditions*/
) + (
    SELECT count()
    FROM events
    WHERE ts >= fromUnixTimestamp64Milli({from_ms:Int64}) AND ts < fromUnixTimestamp64Milli({start_ms:Int64})
        /*conditions*/
        /*repeated*/
) + (
    SELECT sum(template_stats.events)
    FROM template_stats
    WHERE t >= toDateTime({hours_from:UInt32}, 'UTC') AND t < toDateTime({hours_until:UInt32}, 'UTC')
        AND (empty({sources:Array(String)}) OR source IN {sources:Array(String)})
        AND (empty({template_ids:Array(UInt64)}) OR template_id IN {template_ids:Array(UInt64)})
) AS events
