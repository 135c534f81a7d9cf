-- The skeletons of some sources that hold at least one of the words of a search, and which.
-- The terms and the condition come from a closed table of fragments.
-- params: none
-- rows:   text String, terms Array(UInt8)
SELECT DISTINCT skeleton AS text, [/*terms*/] AS terms
FROM template_totals
WHERE skeleton != '' AND has(terms, 1) /*of sources*/
