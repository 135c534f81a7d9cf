-- The hours that hold the oldest and the newest occurrences.
-- params: none
-- rows:   first_ms, last_ms, hours (how many rows there are; 0 = nothing is stored)
SELECT
    toInt64(toUnixTimestamp(min(t))) * 1000 AS first_ms,
    toInt64(toUnixTimestamp(max(t))) * 1000 AS last_ms,
    count() AS hours
FROM series_1h
