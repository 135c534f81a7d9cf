-- The occurrences of whole hours by host.
-- params: hours_from UInt32, hours_until UInt32, sources Array(String), severities Array(String)
-- rows:   at, occurrences, begun (0), k0 (host)
-- Times are seconds since 1970; no source = any, no severity = any.
SELECT toDateTime64(t, 3, 'UTC') AS at, toInt64(host_stats.n) AS occurrences, 0 AS begun, host AS k0
FROM host_stats
WHERE t >= toDateTime({hours_from:UInt32}, 'UTC') AND t < toDateTime({hours_until:UInt32}, 'UTC')
    AND (empty({sources:Array(String)}) OR source IN {sources:Array(String)})
    AND (empty({severities:Array(String)}) OR severity IN {severities:Array(String)})
