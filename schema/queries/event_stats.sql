-- Metrics of the occurrences of a time range by groups.
-- The rows come from a closed table of fragments, and so do keys and metrics; each row has at, occurrences, and expressions.
-- params: step_s Int64 (0 = no buckets), limit UInt32
-- rows:   bucket Int64 (seconds since 1970), keys Array(String), metrics, groups (of all)
SELECT
    if({step_s:Int64} = 0, 0, intDiv(toUnixTimestamp(at), {step_s:Int64}) * {step_s:Int64}) AS bucket,
    [/*keys*/]::Array(String) AS keys, /*metrics*/, toInt64(count() OVER ()) AS groups
FROM (/*rows*/) AS rows
WHERE occurrences > 0 /*chosen*/
GROUP BY bucket, keys
ORDER BY /*order*/ DESC NULLS LAST, keys, bucket
LIMIT {limit:UInt32}
