-- The hosts of some hours and sources whose names contain at least one word of a search: 1 for each word contained.
-- The SQL of the conditions is put in from fixed fragments. They are evaluated once per name while they stay out of the
-- subquery (query_plan_filter_push_down = 0), where they would be evaluated once per row.
-- params: from UInt32, until UInt32
-- rows:   text String, words Array(UInt8)
-- from and until are whole hours in seconds since 1970.
SELECT host AS text, [/*conditions*/] AS words
FROM (
    SELECT DISTINCT host
    FROM host_stats
    WHERE t >= toDateTime({from:UInt32}, 'UTC') AND t < toDateTime({until:UInt32}, 'UTC') /*of sources*/
)
WHERE host != '' AND has(words, 1)
