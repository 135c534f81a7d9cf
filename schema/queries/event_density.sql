-- Occurrences of each of the newest minutes and, before these, of each of the newest hours, newest first.
-- The length of the current minute is the time since its start. Times are seconds since 1970.
-- params: now UInt32, minutes_from UInt32 (a whole hour), limit UInt32
-- rows:   start_s (seconds since 1970), length_s, occurrences
SELECT start_s, length_s, occurrences
FROM (
    SELECT toUnixTimestamp(t) AS start_s, least(60, greatest(1, toInt64({now:UInt32}) - start_s)) AS length_s, sum(debug + info + warning + error + critical) AS occurrences
    FROM series_1m
    WHERE t >= toDateTime({minutes_from:UInt32}, 'UTC')
    GROUP BY t
    UNION ALL
    SELECT toUnixTimestamp(t) AS start_s, toInt64(3600) AS length_s, sum(debug + info + warning + error + critical) AS occurrences
    FROM series_1h
    WHERE t < toDateTime({minutes_from:UInt32}, 'UTC')
    GROUP BY t
)
WHERE occurrences > 0
ORDER BY start_s DESC
LIMIT {limit:UInt32}
