-- The sources and severities of a partition's rows. The fragments come from a closed table.
-- params: table Identifier, day Date, kept_days UInt16
-- rows:   source String, severity String
SELECT source, /*severity*/ AS severity
FROM {table:Identifier}
WHERE /*day*/ = {day:Date} AND /*class*/ = {kept_days:UInt16}
GROUP BY source, severity
