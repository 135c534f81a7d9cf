-- Occurrences per day up to today.
-- params: first Date, last Date, priorities Array(String), sources Array(String) (empty = any)
-- rows:   day Date, value Int64
SELECT
    t AS day,
    sum(if(every OR has({priorities:Array(String)}, 'P1'), p1, 0))
        + sum(if(every OR has({priorities:Array(String)}, 'P2'), p2, 0))
        + sum(if(every OR has({priorities:Array(String)}, 'P3'), p3, 0))
        + sum(if(every OR has({priorities:Array(String)}, 'P4'), p4, 0)) AS value,
    empty({priorities:Array(String)}) AS every
FROM series_1d
WHERE t >= {first:Date} AND t <= {last:Date} AND (empty({sources:Array(String)}) OR source IN {sources:Array(String)})
GROUP BY t
HAVING value > 0
ORDER BY t
