-- A page of anomalies, newest beginning first, after a position, in the state they had at a time.
-- params: at UInt32, before UInt32, before_id String, since UInt32, states Array(String), scopes Array(String), kinds Array(String), sources Array(String), severities Array(String), templates Array(String), ids Array(String), least_score Float64, whole UInt8, limit UInt32
-- rows:   id, started, ended, detected (seconds since 1970), state_then, scope, kind, source, severity,
--         template_id, observed, expected, expected_least, expected_most, score, part_of
-- An empty list matches any. An anomaly is listed once it was detected, and is ongoing until it ended.
SELECT
    id,
    toUnixTimestamp(started_at) AS started,
    toUnixTimestamp(ended_at) AS ended,
    toUnixTimestamp(detected_at) AS detected,
    if(state = 'ongoing' OR ended_at > toDateTime({at:UInt32}, 'UTC'), 'ongoing', 'over') AS state_then,
    scope,
    kind,
    source,
    severity,
    template_id,
    observed,
    expected,
    expected_least,
    expected_most,
    score,
    part_of
FROM insight_anomalies FINAL
WHERE (started_at, id) < (toDateTime({before:UInt32}, 'UTC'), {before_id:String})
    AND started_at >= toDateTime({since:UInt32}, 'UTC')
    AND detected_at <= toDateTime({at:UInt32}, 'UTC')
    AND (empty({states:Array(String)}) OR state_then IN {states:Array(String)})
    AND (empty({scopes:Array(String)}) OR scope IN {scopes:Array(String)})
    AND (empty({kinds:Array(String)}) OR kind IN {kinds:Array(String)})
    AND (empty({sources:Array(String)}) OR source IN {sources:Array(String)})
    AND (empty({severities:Array(String)}) OR severity IN {severities:Array(String)})
    AND (empty({templates:Array(String)}) OR template_id IN {templates:Array(String)})
    AND (empty({ids:Array(String)}) OR id IN {ids:Array(String)})
    AND score >= {least_score:Float64}
    AND ({whole:UInt8} = 0 OR part_of = '')
ORDER BY started_at DESC, id DESC
LIMIT {limit:UInt32}
