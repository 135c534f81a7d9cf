-- The hosts of some hours and sources whose names hold at least one of the words of a search, and which.
-- The terms and the condition come from a closed table of fragments. The terms look at each name once, as long as they are not
-- moved into the inner question (query_plan_filter_push_down = 0), where they would look at each row.
-- params: from UInt32, until UInt32
-- rows:   text String, terms Array(UInt8)
-- from and until are whole hours in seconds since 1970.
SELECT host AS text, [/*terms*/] AS terms
FROM (
    SELECT DISTINCT host
    FROM host_stats
    WHERE t >= toDateTime({from:UInt32}, 'UTC') AND t < toDateTime({until:UInt32}, 'UTC') /*of sources*/
)
WHERE host != '' AND has(terms, 1)
