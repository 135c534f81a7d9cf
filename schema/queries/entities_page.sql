-- Entities in the order of kind and id, after a given one. An empty kind reads from the start.
-- params: after_kind String, after_id String, limit UInt32
-- rows:   kind String, id String, version UInt64, doc String
SELECT kind, id, version, doc
FROM entities FINAL
WHERE (kind, id) > ({after_kind:String}, {after_id:String})
ORDER BY kind, id
LIMIT {limit:UInt32}
