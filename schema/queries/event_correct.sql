-- Sets the priority that a person gave to an event, with the reason.
-- params: id UInt64, ts_ms Int64, priority String, reason String
-- rows:   none
UPDATE events
SET priority = {priority:String}, priority_source = 'manual', confidence = 1, model_version = 'manual',
    correction_reason = {reason:String}
WHERE ts = fromUnixTimestamp64Milli({ts_ms:Int64}) AND id = {id:UInt64}
