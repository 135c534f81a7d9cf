-- Deletes every entity of a kind, including those that this instance has not read.
-- params: kind String, version UInt64
-- rows:   none
INSERT INTO entities (kind, id, version, is_deleted, doc)
SELECT kind, id, {version:UInt64}, 1, ''
FROM entities FINAL
WHERE kind = {kind:String}
