ALTER TABLE events_mv MODIFY QUERY
SELECT
    id, n, received_at, ts, source, type, severity, priority, priority AS auto_priority, priority_source,
    confidence, model_version, template_id, host, environment, trace_id, span_id, skeleton, message, search_words,
    summary, tags, dedup_key
FROM landing
WHERE is_new
