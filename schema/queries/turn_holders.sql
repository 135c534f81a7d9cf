-- Who of those that ask this server has a turn; see store/turn.ts.
-- params: turn String, owner String
-- rows:   own UInt64, others UInt64
SELECT countIf(Settings['log_comment'] = {owner:String}) AS own, count() - own AS others
FROM system.processes
WHERE query_id = {turn:String}
