-- The hours that hold the oldest and the newest occurrences, and how many events an hour has.
-- params: none
-- rows:   first_ms, last_ms, hours (that hold something; 0 = nothing is stored), events
SELECT
    toInt64(toUnixTimestamp(min(t))) * 1000 AS first_ms,
    toInt64(toUnixTimestamp(max(t))) * 1000 AS last_ms,
    uniqExact(t) AS hours,
    (SELECT count() FROM events) AS events
FROM series_1h
