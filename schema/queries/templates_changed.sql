-- The newest versions of the templates that were written since a version, with the columns of templates_all.
-- One that redirects to itself is deleted.
-- params: since UInt64
-- rows:   source, id, version, redirect_to ('' none), text, born
SELECT
    source,
    leftPad(lower(hex(template_id)), 16, '0') AS id,
    version,
    if(redirect_to = 0, '', leftPad(lower(hex(redirect_to)), 16, '0')) AS redirect_to,
    text,
    born
FROM templates
WHERE version > {since:UInt64}
ORDER BY templates.version DESC
LIMIT 1 BY source, template_id
