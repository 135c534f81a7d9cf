-- A message is stored as the constant text of its template, with one byte 1 where each value stands, and its
-- values joined by that byte. '' = message is the whole text; all rows from before are.
ALTER TABLE landing ADD COLUMN IF NOT EXISTS skeleton LowCardinality(String) AFTER span_id
