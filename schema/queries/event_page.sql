-- Events of a time range, newest first. The conditions come from a closed table of fragments.
-- params: from_ms Int64, to_ms Int64, limit UInt32
-- rows:   one event, without what only the detail shows
SELECT
    id, toUnixTimestamp64Milli(ts) AS ts_ms, toUnixTimestamp64Milli(received_at) AS received_ms, n, source, type, severity, priority, priority_source, confidence,
    model_version, leftPad(lower(hex(template_id)), 16, '0') AS template, host, environment, trace_id, span_id,
    skeleton, message, summary, tags, dedup_key, correction_reason, auto_priority
FROM events
WHERE ts >= fromUnixTimestamp64Milli({from_ms:Int64}) AND ts < fromUnixTimestamp64Milli({to_ms:Int64})
    /*conditions*/
ORDER BY events.ts DESC, events.id DESC
LIMIT {limit:UInt32}
