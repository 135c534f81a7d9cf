-- How many templates have occurrences, and how many dead letters wait.
-- params: none
-- rows:   templates, dead_letters
SELECT
    (SELECT uniqExact(template_id) FROM template_stats) AS templates,
    (SELECT count() FROM dead_letters) AS dead_letters
