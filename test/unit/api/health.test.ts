import { test } from 'tap'
import { createHealth, healthProbes, type CheckName, type Probe } from '../../../src/api/health.js'

const ok: Probe = () => ({ status: 'ok' })
const well = { clickhouse: ok, state: ok, spool: ok, workers: ok, alerts: ok }
const broken: Probe = () => Promise.reject(new Error('refused'))
const hanging: Probe = () => new Promise(() => undefined)

const statusWith = async (probes: Partial<Record<CheckName, Probe>>) =>
  (await createHealth({ ...well, ...probes }, { timeoutMs: 20 }).report()).status

void test('what is vital takes the service down, the state only degrades it', async (t) => {
  t.equal(await statusWith({}), 'ok')
  for (const name of ['clickhouse', 'spool', 'workers'] as const) {
    t.equal(await statusWith({ [name]: broken }), 'down', name)
    t.equal(await statusWith({ [name]: hanging }), 'down', `${name} hangs`)
    t.equal(await statusWith({ [name]: () => ({ status: 'degraded' }) }), 'degraded', name)
  }
  t.equal(await statusWith({ state: broken }), 'degraded')
  t.equal(await statusWith({ state: hanging }), 'degraded')
  t.equal(await statusWith({ state: broken, spool: broken }), 'down')
})

void test('a probe that throws at once counts as down too, with its reason', async (t) => {
  const health = createHealth({
    ...well,
    spool: () => {
      throw new Error('disk is full')
    },
  })
  const { checks } = await health.report()
  t.match(checks.spool, { status: 'down', detail: 'disk is full' })
  t.type(checks.clickhouse.latencyMs, 'number')
})

void test('events that wait for long degrade the service', async (t) => {
  const wal = { fault: null, isFull: () => false, bytes: 5, oldestMs: 60_000 }
  // oxlint-disable-next-line typescript/no-explicit-any -- what this probe reads
  const { spool } = healthProbes({ wal } as any)
  const signal = new AbortController().signal
  t.match(await spool(signal), { status: 'ok' })
  wal.oldestMs = 61_000
  t.match(await spool(signal), { status: 'degraded', detail: 'events wait for 61 s' })
})

void test('a hung probe is aborted, and not started again while it hangs', async (t) => {
  let started = 0
  const signals: AbortSignal[] = []
  const state: Probe = (signal) => {
    started++
    signals.push(signal)
    return new Promise(() => undefined)
  }
  const health = createHealth({ ...well, state }, { timeoutMs: 10, freshMs: 0 })
  for (let i = 0; i < 3; i++) {
    t.match((await health.report()).checks.state, { status: 'down', detail: /10 ms/ })
  }
  t.equal(started, 1)
  t.equal(signals[0]?.aborted, true)
})

void test('callers at the same time share one round of probes', async (t) => {
  let asked = 0
  const count: Probe = () => {
    asked++
    return { status: 'ok' }
  }
  const health = createHealth({ ...well, clickhouse: count })
  await Promise.all(Array.from({ length: 50 }, () => health.report()))
  t.equal(asked, 1)
})
