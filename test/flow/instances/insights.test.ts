import t from 'tap'
import { startShared } from '../../support/instances.js'
import { eventually } from '../../support/live-service.js'
import {
  BACKDATED,
  backdateSource,
  eventsOf,
  GOES_ON,
  type Stretch,
} from '../../support/log-history.js'
import { ingest, logIn } from '../../support/service.js'
import { ANOMALY_RULE_ID } from '../../../src/alerting/default-rules.js'
import { HOUR_MS } from '../../../src/model/time.js'

interface Snapshot {
  readonly generated_at: string
  readonly anomalies: readonly { readonly source: string | null; readonly score: number }[]
}

interface Page {
  readonly items: readonly { readonly related_source: string | null }[]
}

const nowMs = Date.now()
const steady: Stretch = {
  source: 'shop',
  message: 'request was served',
  severity: 'INFO',
  host: 'shop-1',
  from: 20 * 24,
  until: GOES_ON,
  perHour: 10,
}
const burst: Stretch = {
  ...steady,
  message: 'connection pool exhausted',
  severity: 'CRITICAL',
  from: 5,
  until: 3,
  perHour: 400,
}

const shared = await startShared(t)
if (shared === null) {
  t.plan(0, 'redis-server is not installed')
} else {
  const env = {
    INSIGHTS_INTERVAL_SECONDS: '1',
    INSIGHTS_CPU_PCT: '100',
    LOG_LEVEL: 'debug',
  }
  const [one, two] = [await shared.start(env), await shared.start(env)]
  const callers = [await logIn(one), await logIn(two)]
  const snapshots = (): Promise<readonly (Snapshot | null)[]> =>
    Promise.all(
      callers.map(async (caller) => {
        const reply = await caller.call('GET', '/api/ai-insights/snapshot')
        return reply.status === 200 ? ((await reply.json()) as Snapshot) : null // its contract
      }),
    )
  const lines = (stretches: readonly Stretch[]): string =>
    eventsOf(stretches, nowMs)
      .map((event) => JSON.stringify(event))
      .join('\n')

  t.test('one instance runs at a time, and all show its snapshot and one alert', async (t) => {
    // A run between two rollups of one insert would see a template without its severity.
    t.equal((await ingest(one, lines([steady, burst]))).status, 202)
    await eventually(
      async () => (await fetch(`${one.api}/metrics`)).text(),
      (metrics) => /wal_records 0$/m.test(metrics),
    )
    await backdateSource(shared.store, 'shop', nowMs - 40 * 24 * HOUR_MS)
    const rule = {
      name: 'Anomalies',
      severity: 'P1',
      kind: { type: 'anomaly' },
      every: '1s',
      opens: 'incident',
    }
    const changed = await callers[0]?.call('PUT', `/api/alert-rules/${ANOMALY_RULE_ID}`, rule)
    t.equal(changed?.status, 200)
    for (const caller of callers)
      await eventually(
        () => caller.get<readonly { readonly connector: string }[]>('/api/sources'),
        ([source]) => source?.connector === BACKDATED,
      )
    const found = await eventually(snapshots, (all) =>
      all.every((each) => each?.anomalies.some(({ source }) => source === 'shop')),
    )
    t.ok((found[0]?.anomalies[0]?.score ?? 0) >= 10)
    // Both also make runs on request, all at once.
    const asked = await Promise.all(
      [...callers, ...callers, ...callers].map((caller) =>
        caller.call('POST', '/api/ai-insights/snapshot/refresh'),
      ),
    )
    t.same([...new Set(asked.map(({ status }) => status))], [200])
    const [a, b] = await eventually(snapshots, ([x, y]) => x?.generated_at === y?.generated_at)
    t.same(a, b)
    for (const caller of callers) {
      const { items } = await eventually(
        () => caller.get<Page>('/api/alerts?limit=200'),
        (page) => page.items.length > 0,
      )
      t.same(
        items.map(({ related_source: source }) => source),
        ['shop'],
        'one alert',
      )
      const incidents = await eventually(
        () => caller.get<{ readonly items: readonly unknown[] }>('/api/incidents'),
        (page) => page.items.length > 0,
      )
      t.equal(incidents.items.length, 1, 'one incident')
    }
    const [anomalies] = await shared.rows(
      'SELECT count() AS rows, uniqExact(scope, severity, template_id, started_at) AS distinct FROM insight_anomalies FINAL',
    )
    t.equal(anomalies?.['rows'], anomalies?.['distinct'], 'each anomaly is kept once')
  })

  t.test('runs of two instances do not overlap', async (t) => {
    const runs = [one, two].map((instance) => runsIn(instance.log()))
    const [first = [], second = []] = runs
    t.ok(first.length >= 3 && second.length >= 3, `${first.length} and ${second.length} runs`)
    const all = runs.flat().toSorted((a, b) => a.from - b.from)
    const overlaps = all.filter(({ from }, i) => from < (all[i - 1]?.to ?? 0))
    t.same(overlaps, [])
  })
}

/** When an instance made runs, by its log. */
function runsIn(log: string): readonly { readonly from: number; readonly to: number }[] {
  return log.split('\n').flatMap((line) => {
    if (!line.includes('insight snapshot computed')) return []
    const { time, tookMs } = JSON.parse(line) as { time: string | number; tookMs: number } // its own
    const to = new Date(time).getTime()
    return [{ from: to - tookMs, to }]
  })
}
