-- The hours of some sources, in the order of their names, from after the one named.
-- params: from UInt32, until UInt32, after String, limit UInt32
-- rows:   source, at Array (hours after from), debug, info, warning, error, critical Arrays, routine_at
-- Moments are seconds since 1970, from and until whole hours. routine_at is the last hour below P1, -1 without.
SELECT
    source,
    groupArray(hour) AS at,
    groupArray(n_debug) AS debug,
    groupArray(n_info) AS info,
    groupArray(n_warning) AS warning,
    groupArray(n_error) AS error,
    groupArray(n_critical) AS critical,
    max(if(n_routine > 0, toInt32(hour), -1)) AS routine_at
FROM (
    SELECT
        source,
        toUInt16(intDiv(toUnixTimestamp(t) - {from:UInt32}, 3600)) AS hour,
        sum(series_1h.debug) AS n_debug,
        sum(series_1h.info) AS n_info,
        sum(series_1h.warning) AS n_warning,
        sum(series_1h.error) AS n_error,
        sum(series_1h.critical) AS n_critical,
        sum(p2 + p3 + p4) AS n_routine
    FROM series_1h
    WHERE t >= toDateTime({from:UInt32}, 'UTC') AND t < toDateTime({until:UInt32}, 'UTC')
        AND source > {after:String}
    GROUP BY source, hour
)
GROUP BY source
ORDER BY source
LIMIT {limit:UInt32}
