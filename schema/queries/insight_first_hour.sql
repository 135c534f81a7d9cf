-- The first hour of a span with occurrences of a source.
-- params: source String, from UInt32, until UInt32
-- rows:   hour UInt32 (hours since 1970); no row when there are no occurrences
-- Times are seconds since 1970, whole hours; an empty source matches any.
SELECT toUInt32(intDiv(toUnixTimestamp(t), 3600)) AS hour
FROM series_1h
WHERE t >= toDateTime({from:UInt32}, 'UTC') AND t < toDateTime({until:UInt32}, 'UTC')
    AND ({source:String} = '' OR source = {source:String})
    AND series_1h.p1 + series_1h.p2 + series_1h.p3 + series_1h.p4 > 0
ORDER BY t
LIMIT 1
