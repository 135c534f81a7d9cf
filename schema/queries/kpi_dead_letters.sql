-- The number of dead letters, in total and since a time.
-- params: since_ms Int64
-- rows:   total, recent; always one row
SELECT
    (SELECT count() FROM dead_letters) AS total,
    (SELECT count() FROM dead_letters WHERE received_at > fromUnixTimestamp64Milli({since_ms:Int64})) AS recent
