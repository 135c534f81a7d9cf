-- The servers of a cluster in the configuration of the queried server.
-- params: cluster String
-- rows:   shard, replica (from 1), host String, is_local UInt8 (the one that is asked)
SELECT shard_num AS shard, replica_num AS replica, host_name AS host, is_local
FROM system.clusters
WHERE cluster = {cluster:String}
ORDER BY shard, replica
