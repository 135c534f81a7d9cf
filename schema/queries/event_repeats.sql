-- The repeats of some events within a time range.
-- params: to_ms Int64, from_ms Int64, ids Array(UInt64), arrived_ms Int64 (none of it arrived before)
-- rows:   id, repeats, repeats_cut (in the second within which the range begins), last_ms (of all)
SELECT
    id,
    sumIf(event_occurrences.n, t < toDateTime(intDiv({to_ms:Int64} + 999, 1000), 'UTC') AND t >= toDateTime(intDiv({from_ms:Int64} + 999, 1000), 'UTC')) AS repeats,
    sumIf(event_occurrences.n, t < toDateTime(intDiv({to_ms:Int64} + 999, 1000), 'UTC') AND toUnixTimestamp(t) * 1000 < {from_ms:Int64} AND t >= toDateTime(intDiv({from_ms:Int64}, 1000), 'UTC')) AS repeats_cut,
    toUnixTimestamp64Milli(max(event_occurrences.last_ts)) AS last_ms
FROM event_occurrences
WHERE id IN {ids:Array(UInt64)} AND arrival >= toDate(fromUnixTimestamp64Milli({arrived_ms:Int64}))
GROUP BY id
