-- Every template with occurrences, merged ones too.
-- params: none
-- rows:   template
SELECT leftPad(lower(hex(template_id)), 16, '0') AS template
FROM template_totals
GROUP BY template_id
HAVING sum(debug + info + warning + error + critical) > 0
