-- The number of shards that each server of a cluster is configured with.
-- params: cluster String
-- rows:   shards; one row when they agree
SELECT DISTINCT shards
FROM (
    SELECT uniqExact(shard_num) AS shards
    FROM clusterAllReplicas({cluster:String}, system.clusters)
    WHERE cluster = {cluster:String}
    GROUP BY hostName(), tcpPort()
)
