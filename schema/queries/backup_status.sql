-- How far a backup or a restoration is. num_entries is known once it is decided what belongs to it.
-- params: id String
-- rows:   status String, error String, num_entries UInt64, total_size UInt64
SELECT toString(status) AS status, error, num_entries, total_size
FROM system.backups
WHERE id = {id:String}
