-- The tables and views of a database.
-- params: database String
-- rows:   name String, comment String
SELECT name, comment
FROM system.tables
WHERE database = {database:String}
