-- Occurrences between two times, both included: whole minutes from the minutes, the rest from the seconds.
-- params: from UInt32, first_minute UInt32, last_minute UInt32, upto UInt32, sources Array(String)
-- rows:   occurrences Int64; always one row
-- Times are seconds since 1970; the whole minutes begin at first_minute and end before last_minute; no source = any.
SELECT sum(n) AS occurrences
FROM (
    SELECT sum(p1 + p2 + p3 + p4) AS n FROM series_1m
    WHERE t >= toDateTime({first_minute:UInt32}, 'UTC') AND t < toDateTime({last_minute:UInt32}, 'UTC')
        AND (empty({sources:Array(String)}) OR source IN {sources:Array(String)})
    UNION ALL
    SELECT sum(p1 + p2 + p3 + p4) AS n FROM series_1s
    WHERE t >= toDateTime({from:UInt32}, 'UTC') AND t <= toDateTime({upto:UInt32}, 'UTC')
        AND (t < toDateTime({first_minute:UInt32}, 'UTC') OR t >= toDateTime({last_minute:UInt32}, 'UTC'))
        AND (empty({sources:Array(String)}) OR source IN {sources:Array(String)})
)
SETTINGS max_threads = 1
