-- The hosts of some hours whose names hold at least one of the words of a search, and which.
-- The terms come from a closed table of fragments.
-- params: from UInt32, until UInt32
-- rows:   text String, terms Array(UInt8)
-- from and until are whole hours in seconds since 1970.
SELECT DISTINCT host AS text, [/*terms*/] AS terms
FROM host_stats
WHERE t >= toDateTime({from:UInt32}, 'UTC') AND t < toDateTime({until:UInt32}, 'UTC')
    AND host != '' AND has(terms, 1)
