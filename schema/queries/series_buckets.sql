-- The newest minutes, hours or days, from the rollup of one step.
-- params: rollup Identifier, from UInt32, until UInt32, sources Array(String), limit UInt32, offset UInt32
-- rows:   bucket UInt32, debug, info, warning, error, critical, p1, p2, p3, p4
-- Times are seconds since 1970, from and until whole steps; no source = any; limit and offset at least
-- 1 and 0.
SELECT
    toUnixTimestamp(toDateTime(t, 'UTC')) AS bucket,
    sum(spans.debug) AS debug,
    sum(spans.info) AS info,
    sum(spans.warning) AS warning,
    sum(spans.error) AS error,
    sum(spans.critical) AS critical,
    sum(spans.p1) AS p1,
    sum(spans.p2) AS p2,
    sum(spans.p3) AS p3,
    sum(spans.p4) AS p4
FROM {rollup:Identifier} AS spans
WHERE toDateTime(t, 'UTC') >= toDateTime({from:UInt32}, 'UTC') AND toDateTime(t, 'UTC') < toDateTime({until:UInt32}, 'UTC')
    AND (empty({sources:Array(String)}) OR source IN {sources:Array(String)})
GROUP BY bucket
HAVING p1 + p2 + p3 + p4 > 0
ORDER BY bucket DESC
LIMIT {limit:UInt32} OFFSET {offset:UInt32}
SETTINGS max_threads = 1
