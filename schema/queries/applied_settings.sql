-- What the settings of the tables were last set to.
-- params: none
-- rows:   name String, value String
SELECT name, argMax(value, applied_at) AS value
FROM applied_settings
GROUP BY name
