-- The progress of a backup or a restore. num_entries is 0 until ClickHouse has listed the files.
-- params: id String
-- rows:   status String, error String, num_entries UInt64, total_size UInt64
SELECT toString(status) AS status, error, num_entries, total_size
FROM system.backups
WHERE id = {id:String}
