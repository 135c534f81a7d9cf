-- Counts the events of a time range: those that began in it, and those that began before and are repeated in it.
-- The conditions come from a closed table of fragments.
-- params: start_ms Int64, to_ms Int64, from_ms Int64 (no event of the range began before)
-- rows:   events
SELECT (
    SELECT count()
    FROM events
    WHERE ts >= fromUnixTimestamp64Milli({start_ms:Int64}) AND ts < fromUnixTimestamp64Milli({to_ms:Int64})
        /*conditions*/
) + (
    SELECT count()
    FROM events
    WHERE ts >= fromUnixTimestamp64Milli({from_ms:Int64}) AND ts < fromUnixTimestamp64Milli({start_ms:Int64})
        /*conditions*/
        /*repeated*/
) AS events
