-- The attributes of sources by whole days, most frequent first; the name '' has the occurrences whose attributes are not counted.
-- params: sources Array(String) (empty = all), from_s Int64, to_s Int64 (exclusive), start String (of the name), limit UInt32
-- rows:   name, n, kinds (bits: 1 text, 2 truth value, 4 number), examples Array(String) (JSON), known (names)
SELECT
    name, sum(attribute_stats.n) AS n, groupBitOr(attribute_stats.kinds) AS kinds,
    groupUniqArrayArray(5)(attribute_stats.examples) AS examples, toInt64(count() OVER ()) AS known
FROM attribute_stats
WHERE (empty({sources:Array(String)}) OR source IN {sources:Array(String)})
    AND day >= toDate(toDateTime({from_s:Int64}, 'UTC')) AND day < toDate(toDateTime({to_s:Int64}, 'UTC'))
    AND startsWith(name, {start:String})
GROUP BY name
ORDER BY n DESC, name
LIMIT {limit:UInt32}
