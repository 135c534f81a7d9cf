-- The number of events that were stored after one position, up to another.
-- The SQL of the conditions is put in from fixed fragments.
-- params: none
-- rows:   matched
SELECT count() AS matched
FROM events
WHERE /*conditions*/
