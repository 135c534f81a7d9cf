-- How many of some events are stored.
-- params: ids Array(UInt64)
-- rows:   held UInt64
SELECT count() AS held
FROM events
WHERE id IN {ids:Array(UInt64)}
