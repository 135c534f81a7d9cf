-- Made again below, cheaper.
DROP VIEW IF EXISTS series_1s_mv
