-- Dead letters that arrived since a time.
-- params: since_ms Int64
-- rows:   n; always one row
SELECT count() AS n
FROM dead_letters
WHERE received_at >= fromUnixTimestamp64Milli({since_ms:Int64})
