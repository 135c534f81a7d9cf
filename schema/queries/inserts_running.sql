-- Inserts of batches that have run on this server for longer than a number of seconds.
-- params: seconds UInt32
-- rows:   running UInt64
SELECT count() AS running
FROM system.processes
WHERE query_kind = 'Insert' AND elapsed > {seconds:UInt32} AND position(query, 'landing') > 0
