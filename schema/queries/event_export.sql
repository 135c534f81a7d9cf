-- The events of a time range in order, with the columns of the exported lines. The columns, the
-- conditions, the order and the repeats come from closed tables of fragments.
-- params: from_ms Int64, to_ms Int64, arrived_ms Int64 (none of them arrived before), limit UInt32
-- rows:   ts_ms, event_id, and what the lines show
SELECT toFloat64(toUnixTimestamp64Milli(page.ts)) AS ts_ms, toFloat64(page.id) AS event_id/*columns*/
FROM (
    SELECT
        id, ts, n, source, type, severity, priority, template_id, host, environment, trace_id, constant_text, variables,
        attribute_names, attribute_values, tags_text, correction_reason
    FROM events
    WHERE ts >= fromUnixTimestamp64Milli({from_ms:Int64}) AND ts < fromUnixTimestamp64Milli({to_ms:Int64})
        AND indexHint(received_at >= fromUnixTimestamp64Milli({arrived_ms:Int64}))
        /*conditions*/
    ORDER BY events.ts /*order*/, events.id /*order*/
    LIMIT {limit:UInt32}
) AS page
/*repeats*/
ORDER BY page.ts /*order*/, page.id /*order*/
