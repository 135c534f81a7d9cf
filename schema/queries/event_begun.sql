-- Counts the events of a time range. In whole hours only events of some templates are counted, if any.
-- The rows are those of event_begun_rows.sql, and of event_begun_templates.sql.
-- params: none
-- rows:   events
SELECT count() AS events
FROM (/*rows*/)
