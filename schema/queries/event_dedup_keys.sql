-- The deduplication keys, among some, of events of a source that arrived since a time.
-- params: source String, keys Array(String), since_ms Int64
-- rows:   dedup_key String
SELECT DISTINCT dedup_key
FROM events
WHERE source = {source:String} AND received_at >= fromUnixTimestamp64Milli({since_ms:Int64}) AND dedup_key IN {keys:Array(String)}
