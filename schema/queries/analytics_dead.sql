-- Dead letters per bucket by arrival; empty buckets are left out.
-- params: from_ms Int64, to_ms Int64, step UInt32
-- rows:   bucket UInt32 (seconds since 1970), dead
SELECT
    intDiv(toUnixTimestamp(toDateTime(received_at, 'UTC')), {step:UInt32}) * {step:UInt32} AS bucket,
    count() AS dead
FROM dead_letters
WHERE received_at >= fromUnixTimestamp64Milli({from_ms:Int64}) AND received_at <= fromUnixTimestamp64Milli({to_ms:Int64})
GROUP BY bucket
ORDER BY bucket
