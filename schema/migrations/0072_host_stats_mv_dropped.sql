-- Made again below, cheaper.
DROP VIEW IF EXISTS host_stats_mv
