-- How many events there are, of some sources or of all.
-- params: all UInt8, sources Array(String)
-- rows:   counted
SELECT sum(source_stats.events) AS counted
FROM source_stats
WHERE {all:UInt8} OR source IN {sources:Array(String)}
