-- The templates with the most ERROR and CRITICAL occurrences in the hours that a window touches.
-- An hour counts when any part of it is within the window.
-- params: from UInt32, to UInt32, merged Array(UInt64), into Array(UInt64), limit UInt32
-- rows:   template String (16 hex digits), errors
SELECT
    leftPad(lower(hex(transform(template_id, {merged:Array(UInt64)}, {into:Array(UInt64)}, template_id))), 16, '0') AS template,
    sum(hour_errors) AS errors
FROM (
    SELECT template_id, sum(error + critical) AS hour_errors
    FROM template_stats
    WHERE t >= toStartOfHour(toDateTime({from:UInt32}, 'UTC')) AND t <= toDateTime({to:UInt32}, 'UTC')
        AND template_id != 0
    GROUP BY template_id, t
    HAVING hour_errors > 0
        AND max(last_ts) >= toDateTime64({from:UInt32}, 3, 'UTC')
        AND min(first_ts) < toDateTime64({to:UInt32} + 1, 3, 'UTC')
)
GROUP BY template
ORDER BY errors DESC, template
LIMIT {limit:UInt32}
