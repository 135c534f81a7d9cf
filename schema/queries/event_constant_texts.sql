-- The constant texts of some sources that contain at least one word of a search: 1 for each word contained.
-- The SQL of the conditions is put in from fixed fragments.
-- params: none
-- rows:   text String, words Array(UInt8)
SELECT DISTINCT constant_text AS text, [/*conditions*/] AS words
FROM template_totals
WHERE constant_text != '' AND has(words, 1) /*of sources*/
