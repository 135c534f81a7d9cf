-- The servers of a cluster that answer. Each counts as a shard of its own, in the order of cluster_servers.
-- params: cluster String
-- rows:   position UInt32 (from 1)
SELECT _shard_num AS position
FROM clusterAllReplicas({cluster:String}, system.one)
ORDER BY position
