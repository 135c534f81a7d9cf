-- Inserts of batches that some server of a cluster has been at for longer than so many seconds.
-- params: cluster String, seconds UInt32
-- rows:   running UInt64
SELECT count() AS running
FROM clusterAllReplicas({cluster:String}, system.processes)
WHERE query_kind = 'Insert' AND elapsed > {seconds:UInt32} AND position(query, 'landing') > 0
