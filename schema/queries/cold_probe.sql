-- Reads a row of a partition, to check that its disk answers.
-- params: table Identifier, partition String
-- rows:   none or one
SELECT ignore(*) AS ignored
FROM {table:Identifier}
WHERE _partition_id = {partition:String}
LIMIT 1
SETTINGS max_threads = 1, max_block_size = 1
