-- Entities of one kind in the order of their ids, after a given one.
-- params: kind String, after_id String, limit UInt32
-- rows:   id String, version UInt64, doc String
SELECT id, version, doc
FROM entities FINAL
WHERE kind = {kind:String} AND id > {after_id:String}
ORDER BY kind, id
LIMIT {limit:UInt32}
