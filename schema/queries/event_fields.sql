-- The attributes of the occurrences of a time range, most frequent first.
-- The rows come from a closed table of fragments; each has occurrences, k0 (attribute_names) and k1 (attribute_values). The 2,000
-- most frequent attribute_names are read; the occurrences of the others have the name ''.
-- params: limit UInt32
-- rows:   name, n, kinds (bits: 1 text, 2 truth value, 4 number), examples Array(String) (JSON), known (names)
SELECT
    names[at] AS name,
    sum(if(indexOf(names, name) = at, counted, 0)) AS n,
    groupBitOr(arrayReduce('groupBitOr', arrayMap(one -> multiIf(startsWith(one, '"'), 1, match(one, '^[tf]'), 2, notEmpty(one), 4, 0), jsons))) AS kinds,
    groupUniqArrayArray(5)(arrayMap(one -> leftUTF8(one, 100), arrayFilter(one -> notEmpty(one), jsons))) AS examples,
    toInt64(count() OVER ()) AS known
FROM (
    SELECT
        counted, names, at, arrayMap(one -> splitByChar('\x01', one)[at], samples) AS jsons
    FROM (
        SELECT
            counted, if(is_kept, splitByChar('\x01', all_names), ['']) AS names,
            if(is_kept, some_values, []) AS samples
        FROM (
            SELECT
                toString(k0) AS all_names, sum(occurrences) AS counted, groupUniqArray(5)(k1) AS some_values,
                row_number() OVER (ORDER BY counted DESC, all_names) <= 2000 AS is_kept
            FROM (/*rows*/) AS rows
            WHERE occurrences > 0 AND notEmpty(k0)
            GROUP BY all_names
        )
    )
    ARRAY JOIN arrayEnumerate(names) AS at
)
GROUP BY name
ORDER BY n DESC, name
LIMIT {limit:UInt32}
