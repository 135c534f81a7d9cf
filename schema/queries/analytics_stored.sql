-- Occurrences per bucket within a span, from the rollup of one step; empty buckets are left out.
-- params: rollup Identifier, step UInt32, from UInt32, until UInt32
-- rows:   bucket UInt32 (seconds since 1970), stored
-- Times are seconds since 1970 and whole steps of the rollup; until is not included.
SELECT
    intDiv(toUnixTimestamp(t), {step:UInt32}) * {step:UInt32} AS bucket,
    sum(debug + info + warning + error + critical) AS stored
FROM {rollup:Identifier}
WHERE t >= toDateTime({from:UInt32}, 'UTC') AND t < toDateTime({until:UInt32}, 'UTC')
GROUP BY bucket
HAVING stored > 0
ORDER BY bucket
SETTINGS max_threads = 1
