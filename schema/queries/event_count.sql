-- The number of events of some sources or of all.
-- params: all UInt8, sources Array(String)
-- rows:   counted
SELECT count() AS counted
FROM events
WHERE {all:UInt8} OR source IN {sources:Array(String)}
