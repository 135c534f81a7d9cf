-- The last transition of each group of each rule, except groups that have been inactive for a day.
-- params: none
-- rows:   rule_id, group_key, doc
SELECT rule_id, group_key, argMax(alert_log.doc, seq) AS doc
FROM alert_log
GROUP BY rule_id, group_key
HAVING JSONExtractString(doc, 'status', 'state') != 'inactive' OR max(at) > now64(3) - INTERVAL 1 DAY
