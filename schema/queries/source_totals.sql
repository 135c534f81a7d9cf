-- Totals of each source that has events.
-- params: none
-- rows:   source String, events, occurrences, last_ms Int64
SELECT
    source,
    sum(template_totals.events) AS events,
    sum(debug + info + warning + error + critical) AS occurrences,
    toUnixTimestamp64Milli(max(last_ts)) AS last_ms
FROM template_totals
GROUP BY source
HAVING occurrences > 0
