-- The latest second with occurrences up to a time.
-- It is searched from days through hours and minutes, so that only the rows of all days and then of one or two days,
-- hours and minutes are read.
-- params: upto UInt32 (seconds since 1970), sources Array(String) (empty = any)
-- rows:   found UInt64 (0 = none), latest UInt32 (seconds since 1970)
WITH
    toDateTime({upto:UInt32}, 'UTC') AS upto,
    (
        SELECT max(t) FROM (
            SELECT t FROM series_1d
            WHERE t < toDate(upto)
                AND (empty({sources:Array(String)}) OR source IN {sources:Array(String)})
            GROUP BY t
            HAVING sum(p1 + p2 + p3 + p4) > 0
        )
    ) AS last_day,
    (
        SELECT max(t) FROM (
            SELECT t FROM series_1h
            WHERE ((t >= toStartOfDay(upto) AND t < toStartOfHour(upto)) OR toDate(t) = last_day)
                AND (empty({sources:Array(String)}) OR source IN {sources:Array(String)})
            GROUP BY t
            HAVING sum(p1 + p2 + p3 + p4) > 0
        )
    ) AS last_hour,
    (
        SELECT max(t) FROM (
            SELECT t FROM series_1m
            WHERE ((t >= toStartOfHour(upto) AND t < toStartOfMinute(upto)) OR toStartOfHour(t) = last_hour)
                AND (empty({sources:Array(String)}) OR source IN {sources:Array(String)})
            GROUP BY t
            HAVING sum(p1 + p2 + p3 + p4) > 0
        )
    ) AS last_minute
SELECT count() AS found, toUnixTimestamp(max(t)) AS latest
FROM (
    SELECT t FROM series_1s
    WHERE ((t >= toStartOfMinute(upto) AND t <= upto) OR toStartOfMinute(t) = last_minute)
        AND (empty({sources:Array(String)}) OR source IN {sources:Array(String)})
    GROUP BY t
    HAVING sum(p1 + p2 + p3 + p4) > 0
)
