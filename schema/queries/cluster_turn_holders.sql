-- Who of those that ask any server of a cluster has a turn; see store/turn.ts.
-- params: cluster String, turn String, owner String
-- rows:   own UInt64, others UInt64
SELECT countIf(Settings['log_comment'] = {owner:String}) AS own, count() - own AS others
FROM clusterAllReplicas({cluster:String}, system.processes)
WHERE query_id = {turn:String}
