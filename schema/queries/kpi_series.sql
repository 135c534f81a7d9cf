-- Everything that is counted by event time up to now, exact to the second, in one pass.
-- All windows end after the running second and the long ones are whole hours, so their starts share a
-- position within the hour: only the hours at the far starts are read as minutes, only the minutes at the
-- starts and the last seven as seconds.
-- params: now UInt32 (seconds since 1970)
-- rows:   minute, minute_errors, five_minutes, hour, hour_before, hour_errors, hour_errors_before, day,
--         day_before, day_errors, day_errors_before, day_criticals, day_p1, sparkline Array; always one row
WITH
    toDateTime({now:UInt32} + 1, 'UTC') AS stop,
    toStartOfMinute(toDateTime({now:UInt32}, 'UTC')) - 360 AS recent,
    [toStartOfMinute(stop - 3600), toStartOfMinute(stop - 7200)] AS near_minutes,
    [toStartOfMinute(stop - 86400), toStartOfMinute(stop - 172800)] AS far_minutes,
    [toStartOfHour(stop - 86400), toStartOfHour(stop - 172800)] AS far_hours,
    toStartOfHour(stop - 7200) AS near
SELECT
    sumIf(n, t >= stop - 60) AS minute,
    sumIf(errors, t >= stop - 60) AS minute_errors,
    sumIf(n, t >= stop - 300) AS five_minutes,
    sumIf(n, t >= stop - 3600) AS hour,
    sumIf(n, t >= stop - 7200 AND t < stop - 3600) AS hour_before,
    sumIf(errors, t >= stop - 3600) AS hour_errors,
    sumIf(errors, t >= stop - 7200 AND t < stop - 3600) AS hour_errors_before,
    sumIf(n, t >= stop - 86400) AS day,
    sumIf(n, t < stop - 86400) AS day_before,
    sumIf(errors, t >= stop - 86400) AS day_errors,
    sumIf(errors, t < stop - 86400) AS day_errors_before,
    sumIf(criticals, t >= stop - 86400) AS day_criticals,
    sumIf(first_priority, t >= stop - 86400) AS day_p1,
    sumForEachIf(arrayMap(i -> if(toStartOfMinute(t) = recent + i * 60, n, 0), range(7)), t >= recent) AS sparkline
FROM (
    SELECT t, debug + info + warning + error + critical AS n, error + critical AS errors,
        critical AS criticals, p1 AS first_priority
    FROM series_1s
    WHERE t >= stop - 172800 AND t < stop
        AND (
            t >= recent
            OR toStartOfMinute(t) IN (near_minutes[1], near_minutes[2], far_minutes[1], far_minutes[2])
        )
    UNION ALL
    SELECT t, debug + info + warning + error + critical, error + critical, critical, p1
    FROM series_1m
    WHERE t >= stop - 172800
        AND ((t >= near AND t < recent) OR toStartOfHour(t) IN (far_hours[1], far_hours[2]))
        AND t NOT IN (near_minutes[1], near_minutes[2], far_minutes[1], far_minutes[2])
    UNION ALL
    SELECT t, debug + info + warning + error + critical, error + critical, critical, p1
    FROM series_1h
    WHERE t >= stop - 172800 AND t < near AND t NOT IN (far_hours[1], far_hours[2])
)
