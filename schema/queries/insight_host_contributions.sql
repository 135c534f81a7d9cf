-- Occurrences of the hosts that changed most in a span and in the hours that it is compared with, with the sums over all hosts.
-- params: source String, severity String, before UInt32, earlier Array(UInt32), from UInt32, until UInt32, limit UInt32
-- rows:   name ('' = no host), before, during, all_before, all_during
-- Times are seconds since 1970, whole hours; those compared with are `earlier`, from `before` on; an empty source or severity matches any.
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
    AND (t >= toDateTime({from:UInt32}, 'UTC')
        OR t IN (SELECT toDateTime(arrayJoin({earlier:Array(UInt32)}), 'UTC')))
    AND ({source:String} = '' OR source = {source:String})
    AND ({severity:String} = '' OR toString(severity) = {severity:String})
GROUP BY host
ORDER BY abs(counted_during * length({earlier:Array(UInt32)}) - counted_before * ({until:UInt32} - {from:UInt32}) / 3600) DESC, host
LIMIT {limit:UInt32}
