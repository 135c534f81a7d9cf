-- Everything that is counted by event time in the last 48 h, exact to the second, in one pass.
-- All windows end after the running second and the long ones are whole hours, so their starts share a
-- position within the hour: only the hours at the far starts are read as minutes, only the minutes at the
-- starts and the last seven as seconds. Each part is summed where it is read: a shard of a cluster sends sums.
-- params: now UInt32, sources Array(String)
-- rows:   by_source UInt8, span UInt32, is_before UInt8, named String, n, errors, criticals, first (P1)
-- Rows with by_source 0 count a span: a second of the last seven minutes, or the part of the last 3600, 7200,
-- 86400 or 172800 seconds that no shorter one covers. Rows with by_source 1 count the last 24 h (or, with
-- is_before, those before) of one of the sources, '' for all others.
WITH
    toDateTime({now:UInt32} + 1, 'UTC') AS stop,
    toStartOfMinute(toDateTime({now:UInt32}, 'UTC')) - 360 AS recent,
    toStartOfMinute(stop - 3600) AS minute_1,
    toStartOfMinute(stop - 7200) AS minute_2,
    toStartOfMinute(stop - 86400) AS minute_24,
    toStartOfMinute(stop - 172800) AS minute_48,
    toStartOfHour(stop - 86400) AS hour_24,
    toStartOfHour(stop - 172800) AS hour_48
SELECT
    grouping(span) AS by_source,
    part_span AS span,
    part_is_before AS is_before,
    part_named AS named,
    sum(part_n) AS n,
    sum(part_errors) AS errors,
    sum(part_criticals) AS criticals,
    sum(part_first) AS first
FROM (
    SELECT
        multiIf(
            t >= recent, toUnixTimestamp(t),
            t >= stop - 3600, 3600,
            t >= stop - 7200, 7200,
            t >= stop - 86400, 86400,
            172800
        ) AS part_span,
        t < stop - 86400 AS part_is_before,
        if(has({sources:Array(String)}, source), source, '') AS part_named,
        sum(debug + info + warning + error + critical) AS part_n,
        sum(error + critical) AS part_errors,
        sum(series_1s.critical) AS part_criticals,
        sum(p1) AS part_first
    FROM series_1s
    WHERE t >= stop - 172800 AND t < stop
        AND (t >= recent OR toStartOfMinute(t) IN (minute_1, minute_2, minute_24, minute_48))
    GROUP BY part_span, part_is_before, part_named
    UNION ALL
    SELECT
        multiIf(
            t >= recent, toUnixTimestamp(t),
            t >= stop - 3600, 3600,
            t >= stop - 7200, 7200,
            t >= stop - 86400, 86400,
            172800
        ) AS part_span,
        t < stop - 86400 AS part_is_before,
        if(has({sources:Array(String)}, source), source, '') AS part_named,
        sum(debug + info + warning + error + critical) AS part_n,
        sum(error + critical) AS part_errors,
        sum(series_1m.critical) AS part_criticals,
        sum(p1) AS part_first
    FROM series_1m
    WHERE t >= stop - 172800
        AND (
            (t >= toStartOfHour(stop - 7200) AND t < recent)
            OR toStartOfHour(t) IN (hour_24, hour_48)
        )
        AND t NOT IN (minute_1, minute_2, minute_24, minute_48)
    GROUP BY part_span, part_is_before, part_named
    UNION ALL
    SELECT
        multiIf(
            t >= recent, toUnixTimestamp(t),
            t >= stop - 3600, 3600,
            t >= stop - 7200, 7200,
            t >= stop - 86400, 86400,
            172800
        ) AS part_span,
        t < stop - 86400 AS part_is_before,
        if(has({sources:Array(String)}, source), source, '') AS part_named,
        sum(debug + info + warning + error + critical) AS part_n,
        sum(error + critical) AS part_errors,
        sum(series_1h.critical) AS part_criticals,
        sum(p1) AS part_first
    FROM series_1h
    WHERE t >= stop - 172800 AND t < toStartOfHour(stop - 7200) AND t NOT IN (hour_24, hour_48)
    GROUP BY part_span, part_is_before, part_named
)
GROUP BY GROUPING SETS ((span), (is_before, named))
