-- The events of each server of a cluster. Servers are counted from 1, in the order of cluster_servers; one without events has no row.
-- params: cluster String, database Identifier
-- rows:   position UInt32, events UInt64
SELECT _shard_num AS position, count() AS events
FROM clusterAllReplicas({cluster:String}, {database:Identifier}, 'events')
GROUP BY position
