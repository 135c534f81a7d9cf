-- The occurrences, or the events, of whole hours by template.
-- The expressions come from a closed table of fragments.
-- params: hours_from UInt32, hours_until UInt32, sources Array(String), template_ids Array(UInt64)
-- rows:   at, occurrences, begun (the events, when they are counted), k0
-- Times are seconds since 1970; no source = any, no template = any.
SELECT toDateTime64(t, 3, 'UTC') AS at, /*counted*/ AS occurrences, /*begun*/ AS begun, /*value*/ AS k0
FROM template_stats
WHERE t >= toDateTime({hours_from:UInt32}, 'UTC') AND t < toDateTime({hours_until:UInt32}, 'UTC')
    AND (empty({sources:Array(String)}) OR source IN {sources:Array(String)})
    AND (empty({template_ids:Array(UInt64)}) OR template_id IN {template_ids:Array(UInt64)})
