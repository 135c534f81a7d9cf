-- The hours of some sources, in the order of their names, from after the one named.
-- params: from UInt32, until UInt32, after String, limit UInt32
-- rows:   source, at Array (hours after from), debug, info, warning, error, critical Arrays, routine_at
-- Moments are seconds since 1970, from and until whole hours. An hour may come several times: its counts add up.
-- routine_at is the last hour below P1, -1 without.
SELECT
    source,
    groupArray(toUInt16(intDiv(toUnixTimestamp(t) - {from:UInt32}, 3600))) AS at,
    groupArray(series_1h.debug) AS debug,
    groupArray(series_1h.info) AS info,
    groupArray(series_1h.warning) AS warning,
    groupArray(series_1h.error) AS error,
    groupArray(series_1h.critical) AS critical,
    max(if(p2 + p3 + p4 > 0, toInt32(intDiv(toUnixTimestamp(t) - {from:UInt32}, 3600)), -1)) AS routine_at
FROM series_1h
WHERE t >= toDateTime({from:UInt32}, 'UTC') AND t < toDateTime({until:UInt32}, 'UTC')
    AND source > {after:String}
GROUP BY source
ORDER BY source
LIMIT {limit:UInt32}
