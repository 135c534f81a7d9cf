-- The receiver's id of its first message about an alert.
-- params: alert_id String, channel_id String
-- rows:   receipt
SELECT receipt
FROM alert_deliveries
WHERE alert_id = {alert_id:String} AND channel_id = {channel_id:String} AND receipt != ''
ORDER BY at
LIMIT 1
