-- Stored messages that arrived in a span of whole seconds: occurrences of events, and dead letters.
-- params: from_ms Int64, to_ms Int64
-- rows:   stored, dead; always one row
WITH
    fromUnixTimestamp64Milli({from_ms:Int64}) AS since,
    fromUnixTimestamp64Milli({to_ms:Int64}) AS until
SELECT
    (SELECT sum(n) FROM events WHERE received_at >= since AND received_at < until)
    + (SELECT sum(repeat_arrivals.n) FROM repeat_arrivals WHERE arrived >= since AND arrived < until) AS stored,
    (SELECT count() FROM dead_letters WHERE received_at >= since AND received_at < until) AS dead
