-- Whether a table has rows of some sources: a row or none.
-- params: table Identifier, sources Array(String)
-- rows:   found UInt8
SELECT 1 AS found
FROM {table:Identifier}
WHERE source IN {sources:Array(String)}
LIMIT 1
