-- Every mined template, for the start.
-- params: none
-- rows:   source, id, redirect_to ('' none), text
SELECT
    source,
    leftPad(lower(hex(template_id)), 16, '0') AS id,
    if(redirect_to = 0, '', leftPad(lower(hex(redirect_to)), 16, '0')) AS redirect_to,
    text
FROM templates FINAL
ORDER BY version, id
