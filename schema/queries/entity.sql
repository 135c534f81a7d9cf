-- The newest version of one entity, a deleted one too.
-- params: kind String, id String
-- rows:   version UInt64, is_deleted UInt8, doc String
SELECT version, is_deleted, doc
FROM entities
WHERE kind = {kind:String} AND id = {id:String}
ORDER BY version DESC
LIMIT 1
