-- The parts of events that arrived on some day or later, on the server that answers.
-- `made` tells a part from an earlier one of its name. Replicas may have others, so parts of replicated tables are not named.
-- params: first_day String
-- rows:   name String, made String, events
SELECT name, concat(toString(toUnixTimestamp(modification_time)), ' ', toString(bytes_on_disk)) AS made, rows AS events
FROM system.parts
WHERE database = currentDatabase() AND table = 'events' AND active AND engine = 'MergeTree' AND NOT startsWith(name, 'patch-')
    AND partition >= {first_day:String}
