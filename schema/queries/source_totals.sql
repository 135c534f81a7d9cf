-- Totals of each of the sources that has events; of all for an empty list.
-- params: sources Array(String)
-- rows:   source String, events, occurrences, last_ms Int64
SELECT
    source,
    sum(template_totals.events) AS events,
    sum(debug + info + warning + error + critical) AS occurrences,
    toUnixTimestamp64Milli(max(last_ts)) AS last_ms
FROM template_totals
WHERE empty({sources:Array(String)}) OR source IN {sources:Array(String)}
GROUP BY source
HAVING occurrences > 0
