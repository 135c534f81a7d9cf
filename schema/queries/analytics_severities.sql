-- Occurrences by severity within a span, from the rollup of one step.
-- params: rollup Identifier, from UInt32, until UInt32, sources Array(String)
-- rows:   debug, info, warning, error, critical; always one row
-- Times are seconds since 1970 and whole steps of the rollup; until is not included; no source = any.
SELECT
    sum(spans.debug) AS debug,
    sum(spans.info) AS info,
    sum(spans.warning) AS warning,
    sum(spans.error) AS error,
    sum(spans.critical) AS critical
FROM {rollup:Identifier} AS spans
WHERE t >= toDateTime({from:UInt32}, 'UTC') AND t < toDateTime({until:UInt32}, 'UTC')
    AND (empty({sources:Array(String)}) OR source IN {sources:Array(String)})
SETTINGS max_threads = 1
