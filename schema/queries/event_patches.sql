-- The number of patch parts of the events, which hold corrections and deletions.
-- params: database String
-- rows:   patches UInt64
SELECT count() AS patches
FROM system.parts
WHERE database = {database:String} AND table = 'events' AND active AND startsWith(name, 'patch-')
