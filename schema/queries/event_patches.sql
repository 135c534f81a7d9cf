-- Parts of the events that hold corrected priorities only.
-- params: database String
-- rows:   patches UInt64
SELECT count() AS patches
FROM system.parts
WHERE database = {database:String} AND table = 'events' AND active AND startsWith(name, 'patch-')
