-- Like `partitions`, for all shards together.
-- params: cluster String, database String, tables Array(String)
-- rows:   table_name String, id String, key String, stored UInt64, bytes UInt64, cold_bytes UInt64 (of them on the disk `cold`)
SELECT table AS table_name, partition_id AS id, any(partition) AS key, sum(rows) AS stored, sum(bytes_on_disk) AS bytes,
    sumIf(bytes_on_disk, disk_name = 'cold') AS cold_bytes
FROM cluster({cluster:String}, system.parts)
WHERE database = {database:String} AND table IN {tables:Array(String)} AND active AND NOT startsWith(partition_id, 'patch-')
GROUP BY table_name, partition_id
ORDER BY table_name DESC, id
