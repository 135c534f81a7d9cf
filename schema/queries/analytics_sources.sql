-- The sources with the most occurrences from one second up to another (not included).
-- Whole hours are read as such, minutes only at the ends that no hour covers, and seconds only in the last
-- minute, so that the counts are exact to the second. Each part is summed where it is read.
-- params: last_minute UInt32, until UInt32, from UInt32, first_hour UInt32, last_hour UInt32, limit UInt32
-- rows:   source String, occurrences, errors
-- In the order of time: from, first_hour, last_hour, last_minute, until.
SELECT
    source,
    sum(spans.n) AS occurrences,
    sum(spans.failed) AS errors
FROM (
    SELECT source, sum(debug + info + warning + error + critical) AS n, sum(error + critical) AS failed
    FROM series_1s
    WHERE t >= toDateTime({last_minute:UInt32}, 'UTC') AND t < toDateTime({until:UInt32}, 'UTC')
    GROUP BY source
    UNION ALL
    SELECT source, sum(debug + info + warning + error + critical) AS n, sum(error + critical) AS failed
    FROM series_1m
    WHERE (t >= toDateTime({from:UInt32}, 'UTC') AND t < toDateTime({first_hour:UInt32}, 'UTC'))
        OR (t >= toDateTime({last_hour:UInt32}, 'UTC') AND t < toDateTime({last_minute:UInt32}, 'UTC'))
    GROUP BY source
    UNION ALL
    SELECT source, sum(debug + info + warning + error + critical) AS n, sum(error + critical) AS failed
    FROM series_1h
    WHERE t >= toDateTime({first_hour:UInt32}, 'UTC') AND t < toDateTime({last_hour:UInt32}, 'UTC')
    GROUP BY source
) AS spans
GROUP BY source
HAVING occurrences > 0
ORDER BY occurrences DESC, source
LIMIT {limit:UInt32}
SETTINGS max_threads = 1
