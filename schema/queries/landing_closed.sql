-- Whether the table that batches are inserted into refuses them; see store/landing-gate.ts.
-- params: database String
-- rows:   closed UInt64
SELECT count() AS closed
FROM system.columns
WHERE database = {database:String} AND table = 'landing' AND name = 'closed'
