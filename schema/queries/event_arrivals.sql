-- The first and last day of repeats for each chunk of ids_each ids; ids grow with arrival.
-- params: ids_each UInt64
-- rows:   chunk, first_s, last_s (beginnings of days, s since 1970)
SELECT
    intDiv(id, {ids_each:UInt64}) AS chunk,
    toUnixTimestamp(toDateTime(min(arrival), 'UTC')) AS first_s,
    toUnixTimestamp(toDateTime(max(arrival), 'UTC')) AS last_s
FROM event_occurrences
GROUP BY chunk
ORDER BY chunk
