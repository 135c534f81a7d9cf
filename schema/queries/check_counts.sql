-- The rows of a cluster check in the tables.
-- params: none
-- rows:   events UInt64, occurrences Int64 (of events and repeats), seconds, minutes, hours, days Int64
SELECT
    (SELECT count() FROM events) AS events,
    (SELECT sum(n) FROM events) + (SELECT sum(n) FROM event_occurrences) AS occurrences,
    (SELECT sum(p1 + p2 + p3 + p4) FROM series_1s) AS seconds,
    (SELECT sum(p1 + p2 + p3 + p4) FROM series_1m) AS minutes,
    (SELECT sum(p1 + p2 + p3 + p4) FROM series_1h) AS hours,
    (SELECT sum(p1 + p2 + p3 + p4) FROM series_1d) AS days
