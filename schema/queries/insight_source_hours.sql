-- Hourly counts by severity of a range of sources, both ends included.
-- params: from UInt32, until UInt32, first String, last String
-- rows:   source, at Array(UInt16) (hours after from), debug, info, warning, error, critical Array(Int32)
-- Times are seconds since 1970, whole hours. The counts of an hour that comes several times add up.
SELECT
    CAST(source, 'String') AS source,
    groupArray(toUInt16(intDiv(toUnixTimestamp(t) - {from:UInt32}, 3600))) AS at,
    groupArray(toInt32(series_1h.debug)) AS debug,
    groupArray(toInt32(series_1h.info)) AS info,
    groupArray(toInt32(series_1h.warning)) AS warning,
    groupArray(toInt32(series_1h.error)) AS error,
    groupArray(toInt32(series_1h.critical)) AS critical
FROM series_1h
WHERE t >= toDateTime({from:UInt32}, 'UTC') AND t < toDateTime({until:UInt32}, 'UTC')
    AND series_1h.source >= {first:String} AND series_1h.source <= {last:String}
GROUP BY series_1h.source
