-- The events from before a time range that are repeated in it, which can only be within the deduplication window after its start.
-- params: arrived_ms Int64 (none of them arrived before), start_ms Int64, repeated_until_ms Int64
-- rows:   id UInt64
SELECT id
FROM event_occurrences
WHERE arrival >= toDate(fromUnixTimestamp64Milli(greatest(0, {arrived_ms:Int64} - 86400000)))
    AND t >= toDateTime(intDiv({start_ms:Int64} + 999, 1000), 'UTC') AND t < toDateTime(intDiv({repeated_until_ms:Int64} + 999, 1000), 'UTC')
GROUP BY id
HAVING sum(event_occurrences.n) > 0
