ALTER TABLE landing_probe ADD COLUMN IF NOT EXISTS skeleton LowCardinality(String) AFTER span_id
