-- The newest hour with occurrences, read from the end of the table backwards.
-- params: until UInt32
-- rows:   hour UInt32 (hours since 1970); no row when there are no occurrences
SELECT toUInt32(intDiv(toUnixTimestamp(t), 3600)) AS hour
FROM series_1h
WHERE t < toDateTime({until:UInt32}, 'UTC') AND series_1h.p1 + series_1h.p2 + series_1h.p3 + series_1h.p4 > 0
ORDER BY t DESC
LIMIT 1
