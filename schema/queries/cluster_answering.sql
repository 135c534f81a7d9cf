-- The shards of a cluster that answer, asked with skip_unavailable_shards.
-- params: cluster String
-- rows:   shard UInt32 (from 1)
SELECT DISTINCT _shard_num AS shard
FROM cluster({cluster:String}, system.one)
