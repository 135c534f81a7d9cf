-- Events of a time range by time and id. Conditions and order come from a closed table of fragments.
-- params: from_ms Int64, to_ms Int64, arrived_ms Int64 (none of them arrived before), limit UInt32
-- rows:   one event, with what a list shows
SELECT
    id, toUnixTimestamp64Milli(ts) AS ts_ms, n, source, type, severity, priority,
    leftPad(lower(hex(template_id)), 16, '0') AS template, host, environment, trace_id, span_id,
    constant_text, variables, attribute_names, attribute_values, tags_text, correction_reason
FROM events
WHERE ts >= fromUnixTimestamp64Milli({from_ms:Int64}) AND ts < fromUnixTimestamp64Milli({to_ms:Int64})
    AND indexHint(received_at >= fromUnixTimestamp64Milli({arrived_ms:Int64}))
    /*conditions*/
ORDER BY events.ts /*order*/, events.id /*order*/
LIMIT {limit:UInt32}
