-- Parts of the events that hold only what was corrected, or which rows are deleted.
-- params: database String
-- rows:   patches UInt64
SELECT count() AS patches
FROM system.parts
WHERE database = {database:String} AND table = 'events' AND active AND startsWith(name, 'patch-')
