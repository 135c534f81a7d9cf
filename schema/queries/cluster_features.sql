-- Whether a server has a coordination service, and the macros that distinguish replicas.
-- params: none
-- rows:   coordination UInt8, macros UInt8
SELECT
    (SELECT count() > 0 FROM system.tables WHERE database = 'system' AND name = 'zookeeper') AS coordination,
    (SELECT countIf(macro IN ('shard', 'replica')) = 2 FROM system.macros) AS macros
