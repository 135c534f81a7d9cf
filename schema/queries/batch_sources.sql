-- Which of some sources have their rows of a batch on this server.
-- params: token String, sources Array(String)
-- rows:   source String
SELECT arrayJoin({sources:Array(String)}) AS source
WHERE {token:String} IN (SELECT token FROM batches WHERE token = {token:String})
