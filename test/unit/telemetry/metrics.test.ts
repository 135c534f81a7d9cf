import { test } from 'tap'
import { createMetrics } from '../../../src/telemetry/metrics.js'

/** Values by name and labels, as Prometheus reads them. */
function parse(text: string): Map<string, number> {
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  return new Map(
    lines.map((line) => {
      const at = line.lastIndexOf(' ')
      return [line.slice(0, at), Number(line.slice(at + 1))]
    }),
  )
}

void test('requests, messages, batches and inserts are counted under labels of ours', async (t) => {
  const metrics = createMetrics({ version: '1.2.3' })
  const request = { routeId: 'listAlerts', method: 'GET', status: 200, durationMs: 7 }
  metrics.request('api', request)
  metrics.request('api', { ...request, durationMs: 700 })
  metrics.request('api', { ...request, routeId: null, method: 'BREW', status: 404 })
  metrics.ingested('ingest', { received: 10, accepted: 7, rejected: 2, dropped: 1 })
  metrics.ingested('upload', { received: 1, accepted: 1, rejected: 0, dropped: 0 })
  metrics.batchWritten(500)
  metrics.batchFailed()
  metrics.insertEnded('landing', 0.2, true)
  metrics.insertEnded('landing', 30, false)
  const values = parse(await metrics.render())
  const name = 'log_engine_http_request_duration_seconds'
  const labels = 'server="api",route="listAlerts",method="GET",status="200"'
  t.equal(values.get(`${name}_count{${labels}}`), 2)
  t.equal(values.get(`${name}_bucket{le="0.01",${labels}}`), 1)
  t.equal(values.get(`${name}_count{server="api",route="none",method="any",status="404"}`), 1)
  t.equal(values.get('log_engine_messages_received_total{protocol="ingest"}'), 10)
  t.equal(values.get('log_engine_messages_total{protocol="ingest",outcome="accepted"}'), 7)
  t.equal(values.get('log_engine_messages_total{protocol="ingest",outcome="rejected"}'), 2)
  t.equal(values.get('log_engine_messages_total{protocol="ingest",outcome="dropped"}'), 1)
  t.equal(values.get('log_engine_messages_total{protocol="upload",outcome="rejected"}'), undefined)
  t.equal(values.get('log_engine_batches_written_total'), 1)
  t.equal(values.get('log_engine_batch_rows_written_total'), 500)
  t.equal(values.get('log_engine_batch_failures_total'), 1)
  t.equal(values.get('log_engine_insert_duration_seconds_count{table="landing"}'), 1)
  t.equal(values.get('log_engine_insert_failures_total{table="landing"}'), 1)
  t.equal(values.get(`log_engine_build_info{version="1.2.3",node="${process.version}"}`), 1)
  t.ok((values.get('process_resident_memory_bytes') ?? 0) > 0)
})

void test('refused credentials of each kind are counted from zero on', async (t) => {
  const metrics = createMetrics({ version: '1' })
  const counts = async () =>
    [...parse(await metrics.render())].filter(([name]) =>
      name.startsWith('log_engine_credentials_refused_total'),
    )
  const [help = ''] = /Credentials that were .+/.exec(await metrics.render()) ?? []
  const kinds = help.split(': ')[1]?.split(', ') ?? []
  t.ok(kinds.length >= 6)
  t.strictSame(
    await counts(),
    kinds.map((kind) => [`log_engine_credentials_refused_total{kind="${kind}"}`, 0]),
  )
  metrics.credentialRefused('password')
  t.equal(new Map(await counts()).get('log_engine_credentials_refused_total{kind="password"}'), 1)
})

void test('stored messages are counted by severity and by a bounded number of sources', async (t) => {
  const metrics = createMetrics({ version: '1' })
  const rows = (sources: readonly string[], all: readonly (readonly [number, number, number])[]) =>
    metrics.stored({
      sources,
      occurrences: Uint32Array.from({ length: sources.length * 5 }, (_, at) =>
        all.reduce((sum, [source, level, n]) => sum + (source * 5 + level === at ? n : 0), 0),
      ),
      attributesLeftOut: 2,
    })
  rows(
    ['shop', 'we"b'],
    [
      [0, 1, 5],
      [1, 3, 1],
      [0, 1, 2],
      [0, 4, 1],
    ],
  )
  for (let i = 0; i < 120; i++) rows([`s${i}`], [[0, 0, 1]])
  const values = parse(await metrics.render())
  const of = (source: string, severity: string) =>
    values.get(`log_engine_stored_messages_total{source="${source}",severity="${severity}"}`)
  t.equal(of('shop', 'INFO'), 7)
  t.equal(of('shop', 'CRITICAL'), 1)
  t.equal(of('we\\"b', 'ERROR'), 1)
  t.equal(of('s97', 'DEBUG'), 1)
  t.equal(of('s98', 'DEBUG'), undefined)
  t.equal(of('(other)', 'DEBUG'), 22)
})

void test('gauges are read when the metrics are', async (t) => {
  const metrics = createMetrics({ version: '1' })
  let wal = 5
  const seven = () => 7
  metrics.watch({
    walBytes: () => wal,
    walLimitBytes: seven,
    walRecords: seven,
    walOldestSeconds: seven,
    walDamagedBytes: seven,
    pipelineBytes: seven,
    bufferBytes: seven,
    bufferFreeBytes: seven,
    dedupEntries: seven,
    templates: seven,
    sources: seven,
    webSockets: seven,
    workers: seven,
    alertRules: seven,
    alertsFiring: seven,
    noticesWaiting: seven,
    noticesByOutcome: () => new Map([['sent', 7]]),
    channelsFailing: seven,
    alertRulesUnknown: seven,
    alertRulesCut: seven,
    alertLagSeconds: seven,
    coldBytes: seven,
    isColdUp: () => true,
    isStateUp: () => true,
    isClickhouseUp: () => false,
  })
  t.equal(parse(await metrics.render()).get('log_engine_wal_bytes'), 5)
  wal = 6
  const values = parse(await metrics.render())
  t.equal(values.get('log_engine_wal_bytes'), 6)
  t.equal(values.get('log_engine_state_up'), 1)
  t.equal(values.get('log_engine_clickhouse_up'), 0)
  for (const name of [
    'wal_limit_bytes',
    'wal_records',
    'wal_oldest_seconds',
    'pipeline_bytes',
    'buffer_bytes',
    'buffer_free_bytes',
    'dedup_window_entries',
    'templates',
  ]) {
    t.equal(values.get(`log_engine_${name}`), 7, name)
  }
})

void test('two sets of metrics do not share a registry', async (t) => {
  const [a, b] = [createMetrics({ version: '1' }), createMetrics({ version: '1' })]
  a.batchWritten(1)
  t.equal(parse(await b.render()).get('log_engine_batches_written_total'), 0)
})
