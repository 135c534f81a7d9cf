-- Events of a time range in their order, each as a line of a file.
-- The line, the conditions, the order and the repeats come from closed tables of fragments.
-- params: from_ms Int64, to_ms Int64, arrived_ms Int64 (none of them arrived before), limit UInt32
-- rows:   ts_ms, id, line
SELECT toUnixTimestamp64Milli(ts) AS ts_ms, id, /*line*/ AS line
FROM (
    SELECT
        id, ts, n, source, type, severity, priority, template_id, host, environment, trace_id, message, tags,
        attribute_names, attribute_values, correction_reason
    FROM events
    WHERE ts >= fromUnixTimestamp64Milli({from_ms:Int64}) AND ts < fromUnixTimestamp64Milli({to_ms:Int64})
        AND received_at >= fromUnixTimestamp64Milli({arrived_ms:Int64})
        /*conditions*/
    ORDER BY events.ts /*order*/, events.id /*order*/
    LIMIT {limit:UInt32}
) AS page
/*repeats*/
ORDER BY page.ts /*order*/, page.id /*order*/
