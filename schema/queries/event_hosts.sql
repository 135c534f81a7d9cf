-- The hosts whose names hold at least one of the words of a search, and which.
-- The terms come from a closed table of fragments.
-- params: none
-- rows:   text String, terms Array(UInt8)
SELECT DISTINCT host AS text, [/*terms*/] AS terms
FROM host_stats
WHERE host != '' AND has(terms, 1)
