-- The recently written entities with their newest version; the time is that of the ClickHouse server.
-- params: seconds UInt32
-- rows:   kind String, id String, version UInt64, is_deleted UInt8
SELECT kind, id, max(entities.version) AS version, argMax(entities.is_deleted, entities.version) AS is_deleted
FROM entities
WHERE updated_at > now64(3) - toIntervalSecond({seconds:UInt32})
GROUP BY kind, id
