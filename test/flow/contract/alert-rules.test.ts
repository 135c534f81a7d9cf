import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { collect, eventually, startLiveService } from '../../support/live-service.js'
import { INGEST_KEY } from '../../support/service.js'

const service = await startLiveService(t)
const { call, ingest } = service

let sent = 0
const events = (count: number, fields: object = {}) =>
  Array.from({ length: count }, () => ({
    source: 'shop',
    severity: 'error',
    message: `order ${++sent} was lost`,
    ...fields,
  }))

const rule = (fields: object): object => ({
  name: `rule ${++sent}`,
  severity: 'P2',
  every: '1s',
  keep_firing_for: '0s',
  ...fields,
})

async function make(fields: object): Promise<string> {
  const { status, body, text } = await call('POST /api/alert-rules', { json: rule(fields) })
  t.equal(status, 201, text)
  return body.id
}

const alertsOf = async (id: string, state = 'firing') =>
  (await call(`GET /api/alerts?rule_id=${id}&state=${state}`)).body.items

/** Waits until a rule has so many alerts. */
const untilAlerts = (id: string, count: number, state = 'firing') =>
  eventually(
    () => alertsOf(id, state),
    (all) => all.length === count,
  )

// The others begin when it is over, because they need the service all the time.
await t.test('a restart repeats and loses nothing', async (t) => {
  const id = await make({
    q: 'host:restart',
    kind: { type: 'threshold', window: '1h', op: '>=', fire: 3 },
    every: '10s',
  })
  await ingest(events(3, { host: 'restart' }))
  const [alert] = await untilAlerts(id, 1)
  await service.restart()
  const later = await make({
    q: 'host:restart',
    kind: { type: 'threshold', window: '1m', op: '>', fire: 0 },
  })
  await untilAlerts(later, 1)
  t.match(await alertsOf(id), [{ id: alert.id }])
  const { items } = (await call(`GET /api/alert-rules/${id}/history`)).body
  t.equal(items.length, 1)
})

// Most of the time is waiting.
t.jobs = 8
const running: Promise<unknown>[] = []
const beside = (name: string, run: (t: Test) => Promise<void>): void =>
  void running.push(t.test(name, { buffered: true }, run))

beside('groups that cross the line are alerts, and resolve', async (t) => {
  const id = await make({
    q: 'source:shop severity>=error "was lost"',
    kind: { type: 'threshold', window: '30s', op: '>', fire: 5 },
    group_by: ['host'],
  })
  await ingest([...events(6, { host: 'web-1' }), ...events(5, { host: 'web-2' })])
  const [alert] = await untilAlerts(id, 1)
  t.match(alert, {
    rule_id: id,
    severity: 'P2',
    state: 'firing',
    value: 6,
    group: { host: 'web-1' },
    title: /^rule \d+ \(host web-1\): 6$/,
    read: false,
    resolved_at: null,
    acknowledged_by: null,
  })
  t.match((await call(`GET /api/alert-rules/${id}`)).body, { firing: 1, version: 1, problem: null })
  const acknowledged = await call(`POST /api/alerts/${alert.id}/acknowledge`)
  t.match(acknowledged.body, { id: alert.id, read: true, acknowledged_by: /^[\w-]{36}$/ })
  const [resolved] = await untilAlerts(id, 1, 'resolved')
  t.match(resolved, { id: alert.id, state: 'resolved', value: 0, started_at: alert.started_at })
  t.ok(Date.parse(resolved.resolved_at) - Date.parse(resolved.started_at) >= 29_000)
  const { body: history } = await call(`GET /api/alert-rules/${id}/history`)
  t.match(
    history.items.map(({ from, to, value }: Record<string, unknown>) => [from, to, value]),
    [
      ['firing', 'resolved', 0],
      ['inactive', 'firing', 6],
    ],
  )
  t.match(history.items[1], { alert_id: alert.id, group: { host: 'web-1' }, q: /was lost/ })
  const first = (await call(`GET /api/alert-rules/${id}/history?limit=1`)).body
  t.equal(first.has_more, true)
  const next = await call(`GET /api/alert-rules/${id}/history?limit=1&cursor=${first.next_cursor}`)
  t.same([...first.items, ...next.body.items], history.items)
  t.equal(next.body.has_more, false)
})

beside('repeats of an event are occurrences of their second', async (t) => {
  const kind = { type: 'threshold', window: '1h', op: '>=', fire: 12 }
  const occurrences = await make({ q: 'host:again /again+/', kind, every: '10s' })
  const firsts = await make({ q: 'host:again', kind: { ...kind, of: 'events' }, every: '10s' })
  const same = { source: 'shop', severity: 'error', host: 'again', message: 'again' }
  for (let i = 0; i < 4; i++) {
    await ingest([same, same, same])
    await sleep(50)
  }
  const [alert] = await untilAlerts(occurrences, 1)
  t.equal(alert.value, 12)
  t.same(await alertsOf(firsts), [], 'they are one event')
})

beside('a rule begins with what is stored, and old messages are not counted', async (t) => {
  const hoursAgo = new Date(Date.now() - 3 * 3_600_000).toISOString()
  await ingest([
    ...events(3, { host: 'before' }),
    ...events(40, { host: 'before', timestamp: hoursAgo }),
  ])
  const id = await make({
    q: 'host:before',
    kind: { type: 'threshold', window: '1m', op: '>=', fire: 3 },
  })
  const [alert] = await untilAlerts(id, 1)
  t.equal(alert.value, 3)
})

beside('messages count when they arrive, or at their own time', async (t) => {
  const window = { type: 'threshold', window: '1m', op: '>=', fire: 1 }
  const arrived = await make({ q: 'host:clocks', kind: { ...window, fire: 3 } })
  const byOwnTime = await make({ q: 'host:clocks', kind: window, time: 'event' })
  const tooLate = await make({ q: 'host:late', kind: { ...window, window: '10s' }, time: 'event' })
  const untilLate = await make({ q: 'host:late', kind: window })
  const shifted = (seconds: number): string => new Date(Date.now() + seconds * 1_000).toISOString()
  // Two clocks are off, and one message was on its way for some seconds.
  await ingest([
    ...events(1, { host: 'clocks', timestamp: shifted(-50 * 60) }),
    ...events(1, { host: 'clocks', timestamp: shifted(7_200) }),
    ...events(1, { host: 'clocks', timestamp: shifted(-3) }),
    ...events(2, { host: 'late', timestamp: shifted(-60) }),
  ])
  const [all] = await untilAlerts(arrived, 1)
  t.equal(all.value, 3)
  const [own] = await untilAlerts(byOwnTime, 1)
  t.equal(own.value, 1)
  await untilAlerts(untilLate, 1)
  t.same(await alertsOf(tooLate), [], 'no window that holds them ended after they came')
  const refused = await call('POST /api/alert-rules', {
    json: rule({ kind: { type: 'absence', for: '10s' }, time: 'event' }),
  })
  t.match(refused.body.detail.details.errors, [{ path: 'time' }])
})

beside('a template that comes again is told of', async (t) => {
  const timestamp = new Date(Date.now() - 5 * 3_600_000).toISOString()
  const again = (minutes: number) => ({
    source: 'shop',
    host: 'again-later',
    severity: 'error',
    message: `the comet was seen for ${minutes} minutes`,
  })
  await ingest([{ ...again(3), timestamp }])
  const kind = { type: 'new_template', window: '1m' }
  const ids = {
    fresh: await make({ q: 'host:again-later', kind }),
    after2h: await make({ q: 'host:again-later', kind: { ...kind, also_reappeared_after: '2h' } }),
    after9h: await make({ q: 'host:again-later', kind: { ...kind, also_reappeared_after: '9h' } }),
  }
  await ingest([again(4)])
  const [alert] = await untilAlerts(ids.after2h, 1)
  t.match(alert, { value: 1, group: { template: /^[0-9a-f]{16}$/ } })
  t.same([...(await alertsOf(ids.fresh)), ...(await alertsOf(ids.after9h))], [])
  const tested = async (after: string) => {
    const short = { ...kind, window: '10s', also_reappeared_after: after }
    const json = { rule: rule({ q: 'host:again-later', kind: short }), days: 1 }
    return (await call('POST /api/alert-rules/backtest', { json })).body
  }
  const found = await eventually(
    () => tested('2h'),
    ({ firing }) => firing === 1,
  )
  t.match(found, { is_complete: true, groups: 1 })
  t.match(await tested('9h'), { is_complete: true, firing: 0 })
})

beside('of 10,000 groups as many are followed as the rule says', async (t) => {
  const kind = { type: 'threshold', window: '1m', op: '>=', fire: 1 }
  const each = await make({ q: 'source:many', kind, group_by: ['host'], max_groups: 20 })
  const whole = await make({ q: 'source:many', kind: { ...kind, fire: 10_000 } })
  const all = Array.from({ length: 10_000 }, (_, i) => ({
    source: 'many',
    host: `host-${i}`,
    message: `host ${i} is up`,
  }))
  await ingest(all)
  const [alert] = await untilAlerts(whole, 1)
  t.equal(alert.value, 10_000)
  t.equal((await untilAlerts(each, 20)).length, 20)
  const shown = await eventually(
    async () => (await call(`GET /api/alert-rules/${each}`)).body,
    ({ problem }) => problem !== null,
  )
  t.match(shown, { firing: 20, problem: 'it has more than 20 groups; the others are left out' })
})

beside('rules of every kind fire', async (t) => {
  // Long windows, because they are looked at one after the other.
  const ids = {
    ratio: await make({
      q: 'host:kinds',
      kind: { type: 'ratio', part: 'severity:critical', window: '10m', op: '>=', fire: 0.25 },
    }),
    absence: await make({
      q: 'host:kinds',
      kind: { type: 'absence', for: '10s', known: '1h' },
      group_by: ['source'],
    }),
    new_template: await make({
      q: 'host:kinds',
      kind: { type: 'new_template', min_severity: 'CRITICAL', window: '10m', at_least: 2 },
    }),
    value: await make({
      q: 'host:kinds has:took_ms',
      kind: { type: 'value', metric: 'p50(took_ms)', window: '10m', op: '>', fire: 90.5 },
      group_by: ['source'],
      opens: 'incident',
    }),
    dead_letters: await make({
      // The share is of all records, also of the many that others send in the same minutes.
      kind: { type: 'dead_letters', window: '10m', share: 0.000_001, at_least: 1 },
    }),
  }
  await ingest([
    ...events(3, { host: 'kinds', severity: 'info' }),
    ...[1, 2].map((i) => ({
      source: 'shop',
      host: 'kinds',
      severity: 'critical',
      message: `reactor ${i} melted`,
    })),
  ])
  await collect(service, 'POST /ingest', {
    token: INGEST_KEY,
    body: '{"source":"shop"}\n{"source":"torn',
  })
  const [ratio] = await untilAlerts(ids.ratio, 1)
  t.equal(ratio.value, 0.4)
  const [fresh] = await untilAlerts(ids.new_template, 1)
  t.match(fresh, { value: 2, group: { template: /^[0-9a-f]{16}$/ } })
  await ingest(
    [80, 91.25, 3_000].map((took_ms) => ({
      source: 'shop',
      host: 'kinds',
      message: 'a slow page',
      tags: { took_ms },
    })),
  )
  const [slow] = await untilAlerts(ids.value, 1)
  t.match(slow, { value: 91.25, group: { source: 'shop' } })
  const incidents = await eventually(
    async () => (await call('GET /api/incidents')).body.items,
    (all) => all.length === 1,
  )
  t.match(incidents, [{ alert_ids: [slow.id], title: slow.title, source: 'shop' }])
  const [dead] = await untilAlerts(ids.dead_letters, 1)
  t.ok(dead.value > 0 && dead.value < 0.5, `${dead.value} of the records`)
  const [absent] = await untilAlerts(ids.absence, 1)
  t.match(absent, { group: { source: 'shop' }, related_source: 'shop' })
  t.match(absent.title, /\(source shop\): nothing for \d+ s$/)
})

beside('a back-test says what a rule would have done', async (t) => {
  const minutesAgo = (minutes: number): string =>
    new Date(Date.now() - minutes * 60_000).toISOString()
  const again = { source: 'shop', severity: 'error', host: 'past', message: 'once more' }
  await ingest([...events(3, { host: 'past', timestamp: minutesAgo(3) }), again, again, again])
  const fields = rule({
    q: 'host:past',
    kind: { type: 'threshold', window: '10s', op: '>=', fire: 6 },
    group_by: ['source'],
  })
  const json = { rule: fields, days: 1 }
  await eventually(
    async () => (await call('GET /api/logs?q=host:past')).body.items,
    (items) => items.length === 4,
  )
  const { body } = await eventually(
    () => call('POST /api/alert-rules/backtest', { json }),
    (reply) => reply.body.firing === 1,
  )
  t.match(body, { is_complete: true, every_s: 1, firing: 1, groups: 1, left_out: 0 })
  t.match(body.transitions[0], { from: 'inactive', to: 'firing', group: ['shop'], value: 6 })
  t.equal(Date.parse(body.until) - Date.parse(body.from), 86_400_000)
  const wrong = await call('POST /api/alert-rules/backtest', {
    json: { rule: { ...fields, q: '(' } },
  })
  t.match(wrong.body.detail.details.errors, [{ path: 'rule.q' }])
})

beside('a rule that was changed or deleted does not go on firing', async (t) => {
  const kind = { type: 'threshold', window: '1m', op: '>=', fire: 1 }
  const fields = rule({ q: 'host:changed', kind })
  const { id } = (await call('POST /api/alert-rules', { json: fields })).body
  await ingest(events(2, { host: 'changed' }))
  const [alert] = await untilAlerts(id, 1)
  const renamed = await call(`PUT /api/alert-rules/${id}`, { json: { ...fields, name: 'renamed' } })
  t.match(renamed.body, { version: 2, name: 'renamed' })
  await sleep(2_500)
  t.match(await alertsOf(id), [{ id: alert.id }], 'another name changes nothing')
  const { items: versions } = (await call(`GET /api/alert-rules/${id}/versions`)).body
  t.match(versions, [
    { version: 2, fields: { name: 'renamed' } },
    { version: 1, fields },
  ])
  const stricter = { ...fields, kind: { ...kind, fire: 3 } }
  await call(`PUT /api/alert-rules/${id}`, { json: stricter })
  t.match(await untilAlerts(id, 1, 'resolved'), [{ id: alert.id }])
  await call(`PUT /api/alert-rules/${id}`, { json: fields })
  const [again] = await untilAlerts(id, 1)
  t.not(again.id, alert.id)
  t.equal((await call(`DELETE /api/alert-rules/${id}`)).status, 204)
  await untilAlerts(id, 2, 'resolved')
  t.equal((await call(`GET /api/alert-rules/${id}`)).status, 404)
  const { items } = (await call(`GET /api/alert-rules/${id}/history`)).body
  t.match(items[0], { to: 'resolved', reason: /deleted/ })
})

// Nobody else may change rules meanwhile.
await Promise.all(running)
t.test('rules are checked, exported and imported', async (t) => {
  const bad = await call('POST /api/alert-rules', {
    json: rule({ q: 'severity:', kind: { type: 'threshold', window: '1m', op: '>', fire: 1 } }),
  })
  t.equal(bad.status, 422)
  t.match(bad.body.detail, { code: 'validation_error', details: { errors: [{ path: 'q' }] } })
  const faultsOf = async (kind: object) =>
    (await call('POST /api/alert-rules', { json: rule({ kind }) })).body.detail.details.errors
  t.match(await faultsOf({ type: 'threshold', window: '1 min', op: '>', least: 1 }), [
    { in: 'body', path: 'kind.fire', message: 'is required' },
    { in: 'body', path: 'kind.least', message: 'is not a known field' },
    { in: 'body', path: 'kind.window', message: /^must be a number and s, m, h or d/ },
  ])
  t.same(await faultsOf({ type: 'threshold', window: '1m', op: '=', fire: 1 }), [
    { in: 'body', path: 'kind.op', message: 'must be one of >, >=, <, <=' },
  ])
  t.match(await faultsOf({ type: 'count' }), [
    { path: 'kind', message: /^its type must be one of threshold, ratio, absence/ },
  ])
  const news = await call('POST /api/alert-rules', {
    json: rule({ name: 'news', kind: { type: 'new_template' } }),
  })
  t.match(news, { status: 201, body: { kind: { type: 'new_template' }, problem: null } })
  const exported = (await call('GET /api/alert-rules/export')).body
  t.ok(exported.rules.length >= 5)
  const imported = await call('POST /api/alert-rules/import', { json: exported })
  t.equal(imported.status, 200, imported.text)
  t.same(
    imported.body.rules
      .map(({ version }: { version: number }) => version)
      .filter((v: number) => v > 3),
    [],
    'nothing changed',
  )
  t.same((await call('GET /api/alert-rules/export')).body, exported)
  const wrong = { rules: [...exported.rules, { ...exported.rules[0], name: 'bad', q: '(' }] }
  const refused = await call('POST /api/alert-rules/import', { json: wrong })
  t.equal(refused.status, 422)
  t.match(refused.body.detail.details.errors, [{ path: `rules.${exported.rules.length}.q` }])
  const kind = { type: 'threshold', window: '1m', op: '>', fire: 1 }
  const twins = [1, 2].map((n) => rule({ name: 'twin', q: `host:twin-${n}`, kind }))
  const makeTwins = () => call('POST /api/alert-rules/import', { json: { rules: twins } })
  const idsOf = ({ body }: Awaited<ReturnType<typeof makeTwins>>) =>
    body.rules.map(({ id, q, version }: Record<string, unknown>) => [id, q, version])
  const made = idsOf(await makeTwins())
  t.match(made, [
    [/./, 'host:twin-1', 1],
    [/./, 'host:twin-2', 1],
  ])
  t.same(idsOf(await makeTwins()), made, 'rules of one name stay apart')
  const channels = ['00000000-0000-4000-8000-000000000000']
  const untold = rule({ kind, notify: { channels } })
  for (const [path, json, at] of [
    ['POST /api/alert-rules', untold, ''],
    [`PUT /api/alert-rules/${made[0][0]}`, untold, ''],
    ['POST /api/alert-rules/import', { rules: [untold] }, 'rules.0.'],
  ] as const) {
    const { status, body } = await call(path, { json })
    t.equal(status, 422)
    t.match(body.detail.details.errors, [{ path: `${at}notify.channels.0` }])
  }
  t.equal((await call(`GET /api/alert-rules/${channels[0]}/history`)).status, 404)
  t.same((await call(`GET /api/alert-rules/${made[0][0]}/history`)).body.items, [])
})
