import t from 'tap'
import { eventsOf, GOES_ON, startOwnServer, type Stretch } from '../../support/log-history.js'
import { ingest, KNOWN, logIn, startService, tempDataDir } from '../../support/service.js'
import type { Caller, Service } from '../../support/service.js'
import { HOUR_MS } from '../../../src/model/time.js'

interface Alert {
  readonly id: string
  readonly title: string
  readonly severity: string
  readonly related_source: string | null
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
  INSIGHTS_INCIDENTS: 'true',
}

const open = async (env: Readonly<Record<string, string>> = {}): Promise<Run> => {
  const service = await startService(t, { ...common, ...env })
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

t.test('a grave anomaly raises an alert once, and as P1 opens an incident', async (t) => {
  const run = await open()
  await send(run, SOURCES.map(steady))
  t.same(await refresh(run), [], 'nothing is wrong')
  await send(run, [burst('shop', {}), burst('late', {})])
  const anomalies = await refresh(run)
  const found = anomalies.find(({ source, scope }) => source === 'shop' && scope === 'severity')
  t.match(found, { severity: 'CRITICAL', kind: 'spike' })
  t.ok(found !== undefined && found.score >= 10)
  const alerts = await alertsOf(run, 'shop')
  t.equal(alerts.length, 1, 'the source, its severity and its template are one anomaly group')
  const title = /^Spike of CRITICAL in shop: 80\d occurrences since /
  t.match(alerts[0], { severity: 'P1', title })
  const incidents = await incidentsOf(run, 'shop')
  t.match(incidents, [{ severity: 'P1', status: 'open', alert_ids: [alerts[0]?.id] }])
  t.equal(incidents.length, 1)
  const isThere = anomalies.some(({ source }) => source === 'late')
  t.ok(isThere, 'the other source has its anomaly')
  t.same(await alertsOf(run, 'late'), [], 'a source that came with its past raises no alert')
  await refresh(run)
  t.same(await alertsOf(run, 'shop'), alerts, 'not again')
  t.same(await incidentsOf(run, 'shop'), incidents)
  await send(run, [burst('shop', { from: 8, until: 6 })])
  const spikes = (await refresh(run)).filter(
    ({ source, scope }) => source === 'shop' && scope === 'severity',
  )
  t.equal(spikes.length, 2, 'a second anomaly within the hold-down')
  t.same(await alertsOf(run, 'shop'), alerts, 'raises no alert')
  await run.service.stop()
})

t.test('alerts can be turned off', async (t) => {
  const run = await open({ INSIGHTS_ALERTS: 'false', INSIGHTS_HOLD_DOWN_SECONDS: '0' })
  await send(run, [burst('desk', {}), burst('mail', { severity: 'ERROR', perHour: 15 })])
  const anomalies = await refresh(run)
  const scoreOf = (name: string): number =>
    Math.max(...anomalies.filter(({ source }) => source === name).map(({ score }) => score))
  t.equal(scoreOf('desk'), 50)
  t.ok(scoreOf('mail') >= 10 && scoreOf('mail') < 50, `${scoreOf('mail')}`)
  t.same([...(await alertsOf(run, 'desk')), ...(await incidentsOf(run, 'desk'))], [])
  t.same(await alertsOf(run, 'mail'), [])
  t.equal((await alertsOf(run, 'shop')).length, 1)
  await run.service.stop()
})

t.test('the hold-down, the score and incidents are settings', async (t) => {
  const run = await open({
    INSIGHTS_HOLD_DOWN_SECONDS: '0',
    INSIGHTS_ALERT_SCORE: '50',
    INSIGHTS_INCIDENTS: 'false',
  })
  await refresh(run)
  await refresh(run)
  t.equal((await alertsOf(run, 'shop')).length, 2, 'the second anomaly, once')
  t.equal((await incidentsOf(run, 'shop')).length, 1, 'no incident without the setting')
  t.match(await alertsOf(run, 'desk'), [{ severity: 'P1' }])
  t.same(await incidentsOf(run, 'desk'), [])
  t.same(await alertsOf(run, 'mail'), [], 'not grave enough')
  await run.service.stop()
})

t.test('P2 opens no incident, and no alert is raised again after a restart', async (t) => {
  const run = await open()
  await refresh(run)
  t.match(await alertsOf(run, 'mail'), [{ severity: 'P2' }])
  t.same(await incidentsOf(run, 'mail'), [])
  t.equal((await alertsOf(run, 'shop')).length, 2)
  t.equal((await alertsOf(run, 'desk')).length, 1)
  await run.service.stop()
})
