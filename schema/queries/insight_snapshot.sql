-- The last snapshot whose data end at a time or before it.
-- params: at UInt32 (seconds since 1970)
-- rows:   generated_ms, doc
SELECT toUnixTimestamp64Milli(generated_at) AS generated_ms, doc
FROM insight_snapshots FINAL
WHERE as_of <= toDateTime({at:UInt32}, 'UTC')
ORDER BY as_of DESC
LIMIT 1
