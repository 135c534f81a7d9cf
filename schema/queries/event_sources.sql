-- The sources of some events.
-- params: ids Array(UInt64)
-- rows:   source
SELECT DISTINCT source FROM events WHERE id IN {ids:Array(UInt64)}
