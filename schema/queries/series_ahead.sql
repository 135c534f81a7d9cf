-- Whether any source has occurrences at a time or later.
-- params: from UInt32
-- rows:   ahead (0 = nothing); always one row
SELECT count() AS ahead
FROM series_1m
WHERE t >= toDateTime({from:UInt32}, 'UTC')
SETTINGS max_threads = 1
