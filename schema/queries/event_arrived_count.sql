-- How many events were stored after some blocks, up to others.
-- The SQL of the conditions is put in from fixed fragments.
-- params: none
-- rows:   matched
SELECT count() AS matched
FROM events
WHERE /*conditions*/
