-- The number of the newest block of events on each shard.
-- ClickHouse numbers its inserts, and a part has the numbers of its first and last insert in its name. The shard comes from a
-- closed table of fragments.
-- params: none
-- rows:   shard, block
SELECT shard, max(toUInt64OrZero(splitByChar('_', _part)[3])) AS block
FROM (SELECT _part, /*shard*/ AS shard FROM events GROUP BY _part, shard)
GROUP BY shard
