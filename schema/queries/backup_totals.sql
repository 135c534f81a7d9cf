-- The totals of the tables that are written together; merges do not change them.
-- params: none
-- rows:   name String, total Int64
SELECT 'events' AS name, toInt64(count()) AS total FROM events
UNION ALL SELECT 'event_occurrences', sum(event_occurrences.n) FROM event_occurrences
UNION ALL SELECT 'series_1s', sum(p1 + p2 + p3 + p4) FROM series_1s
UNION ALL SELECT 'series_1m', sum(p1 + p2 + p3 + p4) FROM series_1m
UNION ALL SELECT 'series_1h', sum(p1 + p2 + p3 + p4) FROM series_1h
UNION ALL SELECT 'series_1d', sum(p1 + p2 + p3 + p4) FROM series_1d
UNION ALL SELECT 'template_stats', sum(p1 + p2 + p3 + p4) FROM template_stats
UNION ALL SELECT 'template_totals', sum(p1 + p2 + p3 + p4) FROM template_totals
UNION ALL SELECT 'host_stats', sum(host_stats.n) FROM host_stats
UNION ALL SELECT 'attribute_stats', sum(attribute_stats.n) FROM attribute_stats
UNION ALL SELECT 'dead_letters', toInt64(count()) FROM dead_letters
UNION ALL SELECT 'templates', toInt64(uniqExact(source, template_id)) FROM templates
