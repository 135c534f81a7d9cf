-- Which skeletons the messages of a template have.
ALTER TABLE template_stats
    ADD COLUMN IF NOT EXISTS skeleton LowCardinality(String),
    MODIFY ORDER BY (t, template_id, source, arrival, skeleton)
