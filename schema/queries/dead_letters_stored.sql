-- The dead letters, among some, that are stored.
-- params: ids Array(UInt64)
-- rows:   id UInt64
SELECT DISTINCT id
FROM dead_letters
WHERE id IN {ids:Array(UInt64)}
