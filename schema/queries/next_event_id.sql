-- The first id above every range of event ids that was ever reserved.
-- params: none
-- rows:   id UInt64
SELECT greatest(max(end_id), 1) AS id
FROM id_blocks
