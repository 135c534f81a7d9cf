-- The number of events of some sources or of all.
-- params: all UInt8, sources Array(String)
-- rows:   counted
SELECT sum(template_totals.events) AS counted
FROM template_totals
WHERE {all:UInt8} OR source IN {sources:Array(String)}
