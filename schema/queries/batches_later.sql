-- The number of stored batches with later tokens, counted up to a limit.
-- params: token String, most UInt32
-- rows:   later UInt64
SELECT count() AS later
FROM (SELECT DISTINCT token FROM batches WHERE token > {token:String} LIMIT {most:UInt32})
