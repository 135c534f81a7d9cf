-- The greatest version ever written, deletions included; 0 when there is none.
-- params: none
-- rows:   version UInt64
SELECT max(version) AS version
FROM entities
