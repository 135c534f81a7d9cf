-- The sources, among some, whose rows of a batch are stored on this server.
-- params: token String, sources Array(String)
-- rows:   source String
SELECT arrayJoin({sources:Array(String)}) AS source
WHERE {token:String} IN (SELECT token FROM batches WHERE token = {token:String})
