-- How many events were stored after some blocks, up to others.
-- The conditions come from a closed table of fragments.
-- params: none
-- rows:   matched
SELECT count() AS matched
FROM events
WHERE /*conditions*/
