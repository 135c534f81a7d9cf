-- The events, among some, that are stored.
-- params: ids Array(UInt64)
-- rows:   id UInt64
SELECT DISTINCT id
FROM events
WHERE id IN {ids:Array(UInt64)}
