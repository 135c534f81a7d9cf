-- How many occurrences the newest minutes hold, the newest first.
-- params: from UInt32, until UInt32
-- rows:   minute UInt32 (seconds since 1970), events
-- from and until are in seconds since 1970.
SELECT toUnixTimestamp(t) AS minute, sum(debug + info + warning + error + critical) AS events
FROM series_1m
WHERE t >= toDateTime({from:UInt32}, 'UTC') AND t < toDateTime({until:UInt32}, 'UTC')
GROUP BY minute
ORDER BY minute DESC
