-- Inserts of batches that this server has been at for longer than so many seconds.
-- params: seconds UInt32
-- rows:   running UInt64
SELECT count() AS running
FROM system.processes
WHERE query_kind = 'Insert' AND elapsed > {seconds:UInt32} AND position(query, 'landing') > 0
