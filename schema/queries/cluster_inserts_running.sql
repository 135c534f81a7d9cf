-- Inserts of batches that have run on any server of a cluster for longer than a number of seconds.
-- params: cluster String, seconds UInt32
-- rows:   running UInt64
SELECT count() AS running
FROM clusterAllReplicas({cluster:String}, system.processes)
WHERE query_kind = 'Insert' AND elapsed > {seconds:UInt32} AND position(query, 'landing') > 0
