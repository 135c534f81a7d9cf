-- Counts the events of a time range. The rows are those of event_begun_rows.sql.
-- params: none
-- rows:   events
SELECT count() AS events
FROM (/*rows*/)
