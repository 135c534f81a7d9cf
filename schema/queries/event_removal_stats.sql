-- Rows for template_stats that subtract events from its counts of events, in one block. landing subtracts the occurrences.
-- params: ids Array(UInt64)
-- rows:   columns of template_stats
SELECT
    toUInt16(toStartOfMonth(received_at)) AS arrival,
    toUnixTimestamp(toStartOfHour(ts)) AS t,
    source,
    template_id,
    constant_text,
    -toInt64(count()) AS events,
    -toInt64(countIf(auto_priority != 'P1')) AS routine,
    -toInt64(countIf(auto_priority != 'P1' AND confidence < 0.5)) AS unsure,
    -sum(toFloat64(confidence)) AS confidence_sum,
    min(ts) AS first_ts,
    max(ts) AS last_ts
FROM events
WHERE id IN {ids:Array(UInt64)}
GROUP BY arrival, t, source, template_id, constant_text
ORDER BY arrival, t, source, template_id, constant_text
SETTINGS max_block_size = 1000000, max_threads = 1
