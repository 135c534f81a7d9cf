import t from 'tap'
import { eventsOf, GOES_ON, startOwnServer, type Stretch } from '../../support/log-history.js'
import { eventually } from '../../support/live-service.js'
import { ingest, KNOWN, logIn, startService, tempDataDir } from '../../support/service.js'
import type { Caller, Service } from '../../support/service.js'
import { ANOMALY_RULE_ID, DEAD_LETTER_RULE_ID } from '../../../src/alerting/default-rules.js'
import { HOUR_MS } from '../../../src/model/time.js'

interface Alert {
  readonly id: string
  readonly title: string
  readonly severity: string
  readonly related_source: string | null
  readonly state: string | null
}

interface Rule {
  readonly name: string
  readonly state: string
  readonly notify?: object
  readonly evaluated_at: string | null
}

interface Backtest {
  readonly is_complete: boolean
  readonly transitions: readonly { readonly to: string; readonly group: readonly string[] }[]
}

interface Incident {
  readonly title: string
  readonly severity: string
  readonly source: string | null
  readonly status: string
  readonly alert_ids: readonly string[]
}

interface Anomaly {
  readonly id: string
  readonly scope: string
  readonly severity: string | null
  readonly source: string | null
  readonly kind: string
  readonly score: number
  readonly started_at: string
}

interface Page<T> {
  readonly items: readonly T[]
}

interface Run {
  readonly service: Service
  readonly caller: Caller
}

const HISTORY_HOURS = 20 * 24
const STEADY = {
  severity: 'INFO',
  host: 'host-1',
  from: HISTORY_HOURS,
  until: GOES_ON,
  perHour: 20,
}
const nowMs = Date.now()

const steady = (source: string): Stretch => ({
  ...STEADY,
  source,
  message: `request of ${source} was served`,
})
const burst = (source: string, fields: Partial<Stretch>): Stretch => ({
  source,
  message: `the pool of ${source} is exhausted`,
  severity: 'CRITICAL',
  host: 'host-2',
  from: 20,
  until: 18,
  perHour: 400,
  ...fields,
})

const own = await startOwnServer(t)
const common = {
  ...KNOWN,
  ...own.env,
  DATA_DIR: tempDataDir(t),
  INSIGHTS_INTERVAL_SECONDS: '0',
}

const open = async (): Promise<Run> => {
  const service = await startService(t, common)
  return { service, caller: await logIn(service) }
}

/** Sends them, and waits until they are counted. */
async function send({ service }: Run, stretches: readonly Stretch[]): Promise<void> {
  const events = eventsOf(stretches, nowMs)
  const reply = await ingest(service, events.map((event) => JSON.stringify(event)).join('\n'))
  t.equal(reply.status, 202)
  for (;;) {
    const metrics = await fetch(`${service.api}/metrics`)
    if (/wal_records 0$/m.test(await metrics.text())) break
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

/** Makes a run, as a manager asks for it. */
async function refresh({ service, caller }: Run): Promise<readonly Anomaly[]> {
  const reply = await caller.call('POST', '/api/ai-insights/snapshot/refresh')
  if (reply.status !== 200) throw new Error(`${service.api}: ${await reply.text()}`)
  return (await caller.get<Page<Anomaly>>('/api/ai-insights/anomalies?limit=200')).items
}

const alertsOf = async ({ caller }: Run, source: string): Promise<readonly Alert[]> =>
  (await caller.get<Page<Alert>>('/api/alerts?limit=200')).items.filter(
    ({ related_source: related }) => related === source,
  )
const incidentsOf = async ({ caller }: Run, source: string): Promise<readonly Incident[]> =>
  (await caller.get<Page<Incident>>('/api/incidents?limit=200')).items.filter(
    (incident) => incident.source === source,
  )

const SOURCES = ['shop', 'desk', 'late', 'mail'] as const
await own.register(
  SOURCES.filter((name) => name !== 'late'),
  nowMs - 40 * 24 * HOUR_MS,
)

/** Sets fields of the rule of anomalies that is there from the start. */
async function change({ caller }: Run, fields: object): Promise<void> {
  const json = { name: 'Anomalies', severity: 'P1', every: '1s', keep_firing_for: '6h', ...fields }
  const reply = await caller.call('PUT', `/api/alert-rules/${ANOMALY_RULE_ID}`, json)
  if (reply.status !== 200) throw new Error(await reply.text())
}

/** Waits until the rule was judged twice: it fires, and what is over resolves. */
async function judged({ caller }: Run): Promise<Rule> {
  const sinceMs = Date.now() + 2_000
  const path = `/api/alert-rules/${ANOMALY_RULE_ID}`
  return await eventually(
    () => caller.get<Rule>(path),
    ({ evaluated_at: at }) => at !== null && Date.parse(at) > sinceMs,
  )
}

t.test('a grave anomaly raises an alert once, of any restart', async (t) => {
  const run = await open()
  const { items: rules } = await run.caller.get<Page<Rule>>('/api/alert-rules')
  t.same(rules.map(({ name }) => name).toSorted(), ['Anomalies', 'Dead letters'])
  t.ok(rules.every(({ state, notify }) => state !== 'disabled' && notify === undefined))
  const anomalyKind = { type: 'anomaly', min_score: 10 }
  await change(run, { kind: anomalyKind, opens: 'incident' })
  await send(run, SOURCES.map(steady))
  t.same(await refresh(run), [], 'nothing is wrong')
  await send(run, [burst('shop', {}), burst('late', {})])
  const anomalies = await refresh(run)
  const found = anomalies.find(({ source, scope }) => source === 'shop' && scope === 'severity')
  t.match(found, { severity: 'CRITICAL', kind: 'spike' })
  t.ok(found !== undefined && found.score >= 10)
  await judged(run)
  const alerts = await alertsOf(run, 'shop')
  t.equal(alerts.length, 1, 'the source, its severity and its template are one anomaly group')
  const title = /^Spike of CRITICAL in shop: 80\d occurrences since /
  const group = { source: 'shop', severity: 'CRITICAL', template: '', direction: 'rise' }
  const facts = { rule_id: ANOMALY_RULE_ID, state: 'firing', group, read: false, event_ids: [] }
  t.match(alerts[0], { severity: 'P1', title, ...facts })
  const incidents = await incidentsOf(run, 'shop')
  t.match(incidents, [{ severity: 'P1', status: 'open', alert_ids: [alerts[0]?.id] }])
  t.equal(incidents.length, 1)
  const isThere = anomalies.some(({ source }) => source === 'late')
  t.ok(isThere, 'the other source has its anomaly')
  t.same(await alertsOf(run, 'late'), [], 'a source that came with its past raises no alert')
  await send(run, [burst('shop', { from: 8, until: 6 })])
  const spikes = (await refresh(run)).filter(
    ({ source, scope }) => source === 'shop' && scope === 'severity',
  )
  t.equal(spikes.length, 2, 'a second anomaly within the hold-down')
  await judged(run)
  t.same(await alertsOf(run, 'shop'), alerts, 'raises no alert')
  t.same(await incidentsOf(run, 'shop'), incidents)

  await change(run, { kind: { type: 'anomaly', kinds: ['drop'] } })
  await send(run, [burst('desk', {}), burst('mail', { severity: 'ERROR', perHour: 15 })])
  await refresh(run)
  await judged(run)
  t.match(await alertsOf(run, 'shop'), [{ state: 'resolved' }], 'another rule begins anew')
  t.same([...(await alertsOf(run, 'desk')), ...(await alertsOf(run, 'mail'))], [])

  await change(run, { kind: anomalyKind, keep_firing_for: '0s' })
  await judged(run)
  t.match(await alertsOf(run, 'desk'), [{ severity: 'P1', state: 'resolved' }])
  t.match(await alertsOf(run, 'mail'), [{ severity: 'P2', state: 'resolved' }])
  t.same(await incidentsOf(run, 'desk'), [], 'the rule opens none')
  t.equal((await alertsOf(run, 'shop')).length, 2)
  const days = { days: 2, rule: { name: 'x', severity: 'P1', kind: anomalyKind } }
  const tested = await run.caller.call('POST', '/api/alert-rules/backtest', days)
  const { is_complete: isComplete, transitions } = (await tested.json()) as Backtest
  t.equal(isComplete, true)
  const fired = transitions.filter(({ to, group }) => to === 'firing' && group[0] !== '')
  t.same(fired.map(({ group }) => group[0] ?? '').toSorted(), ['desk', 'mail', 'shop', 'shop'])
  const history = `/api/alert-rules/${ANOMALY_RULE_ID}/history?limit=200`
  const before = await run.caller.get(history)
  t.equal((await run.caller.call('DELETE', `/api/alert-rules/${DEAD_LETTER_RULE_ID}`)).status, 204)
  await run.service.stop()

  const later = await open()
  await refresh(later)
  await judged(later)
  t.same(await later.caller.get(history), before, 'nothing is told again')
  const { items: left } = await later.caller.get<Page<Rule>>('/api/alert-rules')
  t.same(
    left.map(({ name }) => name),
    ['Anomalies'],
    'a rule that was deleted does not come back',
  )
  await later.service.stop()
})
