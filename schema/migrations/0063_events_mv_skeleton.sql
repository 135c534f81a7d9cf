-- Made again below with the skeleton. Not MODIFY QUERY: an altered view names its inserts by its UUID until the server is
-- started again, and by its name before and after (26.7), so a batch offered again could be counted twice.
DROP VIEW IF EXISTS events_mv
