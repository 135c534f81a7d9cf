-- Where the newest occurrences are, and how many hours hold how many events.
-- params: none
-- rows:   last_ms, hours (that hold something; 0 = nothing is stored), events
SELECT
    toInt64(toUnixTimestamp(max(t))) * 1000 AS last_ms,
    uniqExact(t) AS hours,
    (SELECT sum(template_totals.events) FROM template_totals) AS events
FROM series_1h
