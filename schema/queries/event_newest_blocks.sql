-- The number of the newest block of events on each shard: ClickHouse numbers its inserts, and the name of a part has the numbers of
-- the first and the last that it holds. The shard comes from a closed table of fragments.
-- params: none
-- rows:   shard, block
SELECT shard, max(toUInt64OrZero(splitByChar('_', _part)[3])) AS block
FROM (SELECT _part, /*shard*/ AS shard FROM events GROUP BY _part, shard)
GROUP BY shard
