-- Splits the events of some sources by their ids into steps of equal size: the last id of each, ascending.
-- params: sources Array(String), rows UInt32
-- rows:   last UInt64
SELECT max(id) AS last
FROM (
    SELECT id, intDiv(rowNumberInAllBlocks(), {rows:UInt32}) AS step
    FROM (
        SELECT id
        FROM events
        WHERE source IN {sources:Array(String)}
        ORDER BY id
    )
)
GROUP BY step
ORDER BY last
