-- The values of the settings that were last applied to the tables.
-- params: none
-- rows:   name String, value String
SELECT name, argMax(value, applied_at) AS value
FROM applied_settings
GROUP BY name
