-- A hash of the columns of each table of a database.
-- params: database String
-- rows:   name String, columns String
SELECT table AS name, lower(hex(sipHash64(arraySort(groupArray((position, name, type, default_kind, default_expression)))))) AS columns
FROM system.columns
WHERE database = {database:String}
GROUP BY table
