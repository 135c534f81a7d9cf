-- The transitions of the last day that channels may not have been told of.
-- params: limit UInt32
-- rows:   doc
SELECT any(alert_log.doc) AS doc
FROM alert_log
WHERE at > now64(3) - INTERVAL 1 DAY AND JSONLength(alert_log.doc, 'channels') > 0
GROUP BY id
ORDER BY max(at), id
LIMIT {limit:UInt32}
