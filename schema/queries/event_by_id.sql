-- One event.
-- params: id UInt64, arrived_ms Int64, arrived_until_ms Int64 (it arrived from the first until before the second)
-- rows:   one event, with all there is to it
SELECT
    id, toUnixTimestamp64Milli(ts) AS ts_ms, toUnixTimestamp64Milli(received_at) AS received_ms, n, source, type, severity, priority, priority_source, confidence,
    model_version, leftPad(lower(hex(template_id)), 16, '0') AS template, host, environment, trace_id, span_id,
    constant_text, variables, summary, attribute_names, attribute_values, tags_text, dedup_key, correction_reason, auto_priority
FROM events
WHERE id = {id:UInt64}
    AND received_at >= fromUnixTimestamp64Milli({arrived_ms:Int64}) AND received_at < fromUnixTimestamp64Milli({arrived_until_ms:Int64})
LIMIT 1
