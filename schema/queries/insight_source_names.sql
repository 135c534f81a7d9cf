-- Sources with counts in a span.
-- params: from UInt32, until UInt32 (seconds since 1970, whole hours)
-- rows:   source, routine_at (hours since 1970 of the last hour with occurrences below P1; 0 = none)
SELECT source, maxIf(intDiv(toUnixTimestamp(t), 3600), p2 + p3 + p4 > 0) AS routine_at
FROM series_1h
WHERE t >= toDateTime({from:UInt32}, 'UTC') AND t < toDateTime({until:UInt32}, 'UTC')
GROUP BY source
ORDER BY source
