-- The constant texts of some sources that hold at least one of the words of a search, and which.
-- The terms and the condition come from a closed table of fragments.
-- params: none
-- rows:   text String, terms Array(UInt8)
SELECT DISTINCT constant_text AS text, [/*terms*/] AS terms
FROM template_totals
WHERE constant_text != '' AND has(terms, 1) /*of sources*/
