-- The hours that can contain events of some sources, severities and priorities, newest first.
-- params: debug UInt8, info UInt8, warning UInt8, error UInt8, critical UInt8, p1 UInt8, p2 UInt8, p3 UInt8, p4 UInt8, from UInt32, until UInt32, sources Array(String), limit UInt32
-- rows:   hour UInt32 (seconds since 1970), most (no more events than so many)
-- 1 = wanted, 0 = not; from and until are whole hours in seconds since 1970; no source = any.
SELECT
    toUnixTimestamp(t) AS hour,
    least(
        sum(debug * {debug:UInt8} + info * {info:UInt8} + warning * {warning:UInt8} + error * {error:UInt8}
            + critical * {critical:UInt8}),
        sum(p1 * {p1:UInt8} + p2 * {p2:UInt8} + p3 * {p3:UInt8} + p4 * {p4:UInt8})
    ) AS most
FROM series_1h
WHERE t >= toDateTime({from:UInt32}, 'UTC') AND t < toDateTime({until:UInt32}, 'UTC')
    AND (empty({sources:Array(String)}) OR source IN {sources:Array(String)})
GROUP BY hour
HAVING most > 0
ORDER BY hour DESC
LIMIT {limit:UInt32}
