-- Whether events were repeated in a range of arrivals, by which the question for their counts is saved.
-- params: from_ms Int64, to_ms Int64
-- rows:   repeats
SELECT count() AS repeats
FROM repeat_arrivals
WHERE arrived >= toDateTime(intDiv({from_ms:Int64}, 1000), 'UTC') AND arrived < toDateTime(intDiv({to_ms:Int64}, 1000), 'UTC')
