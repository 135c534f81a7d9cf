-- Rows for landing that subtract events from every rollup: the counts of each event, negated, in one block.
-- params: ids Array(UInt64)
-- rows:   columns of landing
SELECT
    id, toUInt8(0) AS is_new, toInt32(-counted.2) AS n, received_at, counted.1 AS ts, source, type, severity,
    counted.3 AS priority, template_id, host, constant_text, attribute_names, attribute_values
FROM (
    SELECT *
    FROM events
    WHERE id IN {ids:Array(UInt64)}
) AS removed
LEFT JOIN (
    SELECT id, groupArray((toDateTime64(t, 3, 'UTC'), toInt64(repeated), priority)) AS list
    FROM (
        SELECT id, t, priority, sum(event_occurrences.n) AS repeated
        FROM event_occurrences
        WHERE id IN {ids:Array(UInt64)}
        GROUP BY id, t, priority
        HAVING repeated != 0
    )
    GROUP BY id
) AS repeats USING id
ARRAY JOIN arrayConcat([(toDateTime64(removed.ts, 3, 'UTC'), toInt64(removed.n), auto_priority)], repeats.list) AS counted
ORDER BY id
SETTINGS max_block_size = 1000000, max_threads = 1
