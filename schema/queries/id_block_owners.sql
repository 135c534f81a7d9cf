-- The instances that have reserved any id of a range.
-- params: first_id UInt64, end_id UInt64
-- rows:   owner String
SELECT DISTINCT owner
FROM id_blocks
WHERE first_id < {end_id:UInt64} AND end_id > {first_id:UInt64}
