-- On which days ids were seen again, for one of so many ids after the other: ids grow with arrival.
-- params: ids_each UInt64
-- rows:   chunk, first_s, last_s (beginnings of days, s since 1970)
SELECT
    intDiv(id, {ids_each:UInt64}) AS chunk,
    toUnixTimestamp(toDateTime(min(arrival), 'UTC')) AS first_s,
    toUnixTimestamp(toDateTime(max(arrival), 'UTC')) AS last_s
FROM event_occurrences
GROUP BY chunk
ORDER BY chunk
