-- Occurrences or events by the values of one field and by time; one row has the sums of all.
-- Texts are grouped by a hash of 128 bits, which takes a quarter of the time (bench/NOTES.md).
-- The first other row is of those without a value; then the most frequent values come first.
-- The rows come from a closed table of fragments; each has at, occurrences, begun and k0.
-- params: step_s Int64 (0 = no buckets), by_events UInt8 (1 = events are counted), limit UInt32
-- rows:   value String ('' in the row of sums), is_sum UInt8, counted, events (0 from rollups), known (distinct values), bucket_s Array(Int64), bucket_n Array(Int64)
SELECT
    value, grouping(value) AS is_sum, sum(part) AS counted, sum(begun) AS events, uniqExactIf(value, value != '' AND part != 0) AS known,
    sumMap([bucket], [part]) AS buckets, buckets.1 AS bucket_s, buckets.2 AS bucket_n
FROM (
    SELECT bucket, toString(/*text*/) AS value, part, begun
    FROM (
        SELECT
            if({step_s:Int64} = 0, 0, intDiv(toUnixTimestamp(at), {step_s:Int64}) * {step_s:Int64}) AS bucket,
            any(k0) AS key, toInt64(sum(if({by_events:UInt8} = 1, rows.begun, rows.occurrences))) AS part,
            toInt64(sum(rows.begun)) AS begun
        FROM (/*rows*/) AS rows
        GROUP BY bucket, /*group*/
    )
)
GROUP BY GROUPING SETS ((value), ())
HAVING is_sum = 1 OR counted != 0
ORDER BY is_sum DESC, value != '', counted DESC, value
LIMIT {limit:UInt32}
