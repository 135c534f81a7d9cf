-- The tables and views of a database.
-- params: database String
-- rows:   name String, comment String, engine String
SELECT name, comment, engine
FROM system.tables
WHERE database = {database:String}
