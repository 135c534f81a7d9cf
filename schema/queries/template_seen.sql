-- The occurrences of the templates of some sources, without templates that have none.
-- params: sources Array(String)
-- rows:   id String (16 hex digits), n
SELECT
    leftPad(lower(hex(template_id)), 16, '0') AS id,
    sum(debug + info + warning + error + critical) AS n
FROM template_totals
WHERE source IN {sources:Array(String)}
GROUP BY template_id
HAVING n > 0
