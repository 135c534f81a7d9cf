-- Occurrences of the hosts that changed most in a span and in the one before it, with the sums over all hosts.
-- params: source String, severity String, before UInt32, from UInt32, until UInt32, limit UInt32
-- rows:   name ('' = no host), before, during, all_before, all_during
-- Times are seconds since 1970, whole hours; an empty source or severity matches any.
WITH sumIf(host_stats.n, t < toDateTime({from:UInt32}, 'UTC')) AS counted_before,
    sumIf(host_stats.n, t >= toDateTime({from:UInt32}, 'UTC')) AS counted_during
SELECT
    host AS name,
    counted_before AS before,
    counted_during AS during,
    sum(counted_before) OVER () AS all_before,
    sum(counted_during) OVER () AS all_during
FROM host_stats
WHERE t >= toDateTime({before:UInt32}, 'UTC') AND t < toDateTime({until:UInt32}, 'UTC')
    AND ({source:String} = '' OR source = {source:String})
    AND ({severity:String} = '' OR toString(severity) = {severity:String})
GROUP BY host
ORDER BY abs(counted_during * ({from:UInt32} - {before:UInt32}) - counted_before * ({until:UInt32} - {from:UInt32})) DESC, host
LIMIT {limit:UInt32}
