-- The tables and views of a database that every server of a cluster has, in the same form.
-- params: cluster String, database String
-- rows:   name String, comment String
SELECT name, comment
FROM clusterAllReplicas({cluster:String}, system.tables)
WHERE database = {database:String}
GROUP BY name, comment
HAVING count() = (SELECT count() FROM clusterAllReplicas({cluster:String}, system.one))
