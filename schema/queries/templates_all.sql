-- Every mined template, for the start. One that redirects to itself is deleted.
-- params: none
-- rows:   source, id, version, redirect_to ('' none), text, born
SELECT
    source,
    leftPad(lower(hex(template_id)), 16, '0') AS id,
    version,
    if(redirect_to = 0, '', leftPad(lower(hex(redirect_to)), 16, '0')) AS redirect_to,
    text,
    born
FROM templates FINAL
WHERE templates.redirect_to != template_id
ORDER BY version, id
