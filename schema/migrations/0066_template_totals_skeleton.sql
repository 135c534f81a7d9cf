-- All skeletons there are: a search asks here which of them hold a word.
ALTER TABLE template_totals
    ADD COLUMN IF NOT EXISTS skeleton LowCardinality(String),
    MODIFY ORDER BY (source, template_id, arrival, skeleton)
