-- The newest hour with occurrences.
-- params: until UInt32
-- rows:   hour UInt32 (hours since 1970, 0 without any); always one row
SELECT toUInt32(intDiv(toUnixTimestamp(max(t)), 3600)) AS hour
FROM series_1h
WHERE t < toDateTime({until:UInt32}, 'UTC') AND series_1h.p1 + series_1h.p2 + series_1h.p3 + series_1h.p4 > 0
