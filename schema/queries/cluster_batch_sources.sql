-- The sources, among some, whose rows of a batch are stored on their shards.
-- params: token String, sources Array(String), shards UInt32
-- rows:   source String
SELECT source
FROM (SELECT arrayJoin({sources:Array(String)}) AS source)
WHERE cityHash64(source) % {shards:UInt32} + 1 IN (SELECT _shard_num FROM batches WHERE token = {token:String})
