-- The repeats of one event by second and by the priority they were counted under.
-- params: id UInt64
-- rows:   t_ms, priority, counted
SELECT toInt64(toUnixTimestamp(t)) * 1000 AS t_ms, priority, sum(event_occurrences.n) AS counted
FROM event_occurrences
WHERE id = {id:UInt64}
GROUP BY t_ms, priority
HAVING counted != 0
