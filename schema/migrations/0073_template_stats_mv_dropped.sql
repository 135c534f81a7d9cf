-- Made again below, cheaper.
DROP VIEW IF EXISTS template_stats_mv
