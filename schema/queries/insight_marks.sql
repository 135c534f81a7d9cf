-- What tells whether an hour is as it was: its counts, mixed with the names of their sources. Wraps at 2^64.
-- params: from UInt32, until UInt32 (seconds since 1970, whole hours)
-- rows:   hour (hours since 1970), mark String
SELECT
    intDiv(toUnixTimestamp(t), 3600) AS hour,
    toString(sum(
        cityHash64(source) * (series_1h.debug + 3 * series_1h.info + 5 * series_1h.warning + 7 * series_1h.error + 11 * series_1h.critical)
    )) AS mark
FROM series_1h
WHERE t >= toDateTime({from:UInt32}, 'UTC') AND t < toDateTime({until:UInt32}, 'UTC')
GROUP BY hour
