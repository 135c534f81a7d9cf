-- The occurrences by the values of each of some fields; one more row of each field has those without a value, one of all the sum.
-- The SQL of rows, keys and texts is put in from fixed fragments. Each row has the column occurrences, and a column k0, k1 … for each field.
-- params: all UInt8 (the number of fields), limit UInt32 (values of a field)
-- rows:   field (its number; `all` in the row of the sum), value String ('' for none), counted, known (distinct values of the field)
SELECT field, value, sum(part) AS counted, countIf(value != '' AND counted != 0) OVER (PARTITION BY field) AS known
FROM (
    SELECT multiIf(/*fields*/, {all:UInt8}) AS field, multiIf(/*texts*/, '') AS value, part
    FROM (
        SELECT /*keys*/, toInt64(sum(rows.occurrences)) AS part
        FROM (/*rows*/) AS rows
        GROUP BY GROUPING SETS (/*sets*/, ())
    )
)
GROUP BY field, value
HAVING counted != 0
ORDER BY field, value != '', counted DESC, value
LIMIT {limit:UInt32} BY field
