import { Ajv2020 } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'
import t, { type Test } from 'tap'
import { settled, startLiveService, type Answer } from '../../support/live-service.js'
import { eventsOf, GOES_ON, type Stretch } from '../../support/log-history.js'
import { MINUTE_MS, HOUR_MS } from '../../../src/model/time.js'

// oxlint-disable typescript/no-explicit-any -- the test checks the content of replies

const nowMs = Date.now()
const hourAgo = (hours: number): number => (Math.floor(nowMs / HOUR_MS) - hours) * HOUR_MS
const iso = (ms: number): string => new Date(ms).toISOString()

const kind = (source: string, message: string, fields: Partial<Stretch>): Stretch => ({
  source,
  message,
  severity: 'INFO',
  host: `${source}-1`,
  from: 20 * 24,
  until: GOES_ON,
  perHour: 12,
  ...fields,
})

/** A shop whose pool ran dry on one host, a mail server that fell silent, a desk that flooded three days ago. */
const HISTORY = [
  kind('shop', 'request was served', {}),
  kind('shop', 'payment was declined', { severity: 'ERROR', perHour: 2 }),
  kind('shop', 'connection pool exhausted', {
    severity: 'ERROR',
    host: 'shop-2',
    from: 9,
    until: 6,
    perHour: 300,
  }),
  kind('mail', 'message was delivered', { until: 15 }),
  kind('mail', 'greylisted by the other side', { perHour: 3, until: 15 }),
  kind('desk', 'ticket was opened', { severity: 'WARNING' }),
  kind('desk', 'queue is full', {
    severity: 'CRITICAL',
    from: 72,
    until: 70,
    perHour: 500,
  }),
]

const service = await startLiveService(t)
const { call } = service
const path = '/api/ai-insights'
const get = async (url: string): Promise<any> => {
  const reply = await call(`GET ${url}`)
  if (reply.status !== 200) throw new Error(`${url}: ${reply.text}`)
  return reply.body
}
const refused = (t: Test, reply: Answer, [status, code]: readonly [number, string]): void => {
  t.equal(reply.status, status)
  t.match(reply.body, { detail: { code, message: String, details: Object } })
}

const viewer = await service.newUser('viewer')
const manager = await service.newUser('manager')
const ajv = formats.default(new Ajv2020({ strict: false }))
const openapi = await get('/openapi.json')

/** Whether a reply is what the API's description says. */
function described(t: Test, operation: any, reply: Answer): void {
  const schema = operation.responses[reply.status]?.content['application/json'].schema
  const whole = { ...schema, components: openapi.components }
  t.ok(ajv.validate(whole, reply.body), ajv.errorsText())
}

t.test('before the first run there is no snapshot and no anomaly', async (t) => {
  refused(t, await call(`GET ${path}/snapshot`), [404, 'not_found'])
  t.same(await get(`${path}/anomalies`), { items: [], next_cursor: null, has_more: false })
})

t.test('the snapshot says what changed, and its items link to events and templates', async (t) => {
  await service.ingest(eventsOf(HISTORY, nowMs))
  await settled(service)
  const reply = await call(`POST ${path}/snapshot/refresh`, { token: manager.access_token })
  described(t, openapi.paths[`${path}/snapshot/refresh`].post, reply)
  const snapshot = reply.body
  t.same(await get(`${path}/snapshot`), snapshot, 'the last one computed')
  t.same(
    (await call(`GET ${path}/snapshot`, { token: viewer.access_token })).body,
    snapshot,
    'for viewers too',
  )
  const find = (fields: object) =>
    snapshot.anomalies.find((each: any) =>
      Object.entries(fields).every(([name, value]) => each[name] === value),
    )
  const pool = find({ source: 'shop', scope: 'severity', severity: 'ERROR' })
  t.match(pool, {
    kind: 'spike',
    state: 'over',
    started_at: iso(hourAgo(9)),
    ended_at: iso(hourAgo(6)),
  })
  t.ok(pool.observed > 900 && pool.expected < 20 && pool.expected_range[1] < pool.observed)
  const silence = find({ source: 'mail', scope: 'source' })
  t.match(silence, { kind: 'silence', state: 'ongoing', observed: 0, ended_at: null })
  t.equal(silence.started_at, iso(hourAgo(15)))
  t.match(find({ source: 'desk', severity: 'CRITICAL' }), { state: 'over' })
  const why = snapshot.correlations.find((each: any) => each.anomaly_id === pool.id)
  t.match(why.templates[0], { text: 'connection pool exhausted', before: 0, share_before: 0 })
  t.match(why.hosts[0], { name: 'shop-2', before: 0, share_before: 0 })
  t.ok(why.hosts[0].explains > 0.9 && why.templates[0].explains > 0.9)
  const emerging = snapshot.emerging_templates.find((each: any) => each.source === 'shop')
  t.match(emerging, { change: 'new', template_text: 'connection pool exhausted' })
  t.equal(emerging.count_24h, emerging.count_24h | 0)
  t.equal(snapshot.forecast.events.hours.length, 24)
  t.match(snapshot.health, { drift: Number, low_confidence: Number, agreement: null })
  for (const { links, template_id: id, source, kind, severity, scope } of [
    ...snapshot.anomalies,
    ...snapshot.emerging_templates,
  ]) {
    const { items } = await get(links.events)
    t.ok(items.length > 0 || kind === 'drop', `${links.events} has events`)
    for (const item of items) {
      if (source !== null) t.equal(item.source, source)
      if (id !== null) t.equal(item.template_id, id)
      if (scope === 'severity') t.equal(item.severity, severity)
    }
    t.equal(links.template === null, id === null)
    if (id !== null) t.equal((await get(links.template)).template_id, id)
  }
})

t.test('the same data give the same snapshot', async (t) => {
  const at = iso(hourAgo(2))
  const one = await call(`POST ${path}/snapshot/refresh?at=${at}`)
  const two = await call(`POST ${path}/snapshot/refresh?at=${at}`)
  t.same({ ...one.body, generated_at: '' }, { ...two.body, generated_at: '' })
})

t.test('at: the snapshot and the anomalies of a time in the past', async (t) => {
  const then = iso(hourAgo(48) + MINUTE_MS)
  refused(t, await call(`GET ${path}/snapshot?at=${then}`), [404, 'not_found'])
  const made = (await call(`POST ${path}/snapshot/refresh?at=${then}`)).body
  t.equal(made.as_of, iso(hourAgo(48)))
  t.same(await get(`${path}/snapshot?at=${then}`), made)
  t.same(await get(`${path}/snapshot?at=${iso(hourAgo(40))}`), made, 'the last one before')
  t.not((await get(`${path}/snapshot`)).as_of, made.as_of, 'the newest stays the newest')
  t.same([...new Set(made.anomalies.map((each: any) => each.source))], ['desk'])
  const list = async (at: number): Promise<any[]> =>
    (await get(`${path}/anomalies?at=${iso(at)}`)).items
  const known = await list(hourAgo(48))
  t.ok(
    known.length > 0 && known.every(({ source, state }) => source === 'desk' && state === 'over'),
  )
  const during = await list(hourAgo(71))
  t.ok(during.length > 0 && during.every(({ state }) => state === 'ongoing'), 'as it was then')
  t.same(await list(hourAgo(73)), [], 'before it was detected')
  const offset = encodeURIComponent(iso(hourAgo(48)).replace('Z', '+00:00'))
  t.same((await get(`${path}/anomalies?at=${offset}`)).items, known, 'with an offset')
})

t.test('an anomaly comes with what explains it', async (t) => {
  const { items } = await get(`${path}/anomalies?limit=200`)
  for (const anomaly of items) {
    const reply = await call(`GET ${path}/anomalies/${anomaly.id}`, { token: viewer.access_token })
    described(t, openapi.paths[`${path}/anomalies/{anomaly_id}`].get, reply)
    t.same(reply.body.anomaly, anomaly)
  }
  const pool = items.find((each: any) => each.source === 'shop' && each.severity === 'ERROR')
  const { hosts, templates, from, before_from: before } = await get(`${path}/anomalies/${pool.id}`)
  t.match(hosts[0], { name: 'shop-2', before: 0 })
  t.match(templates[0], { text: 'connection pool exhausted' })
  t.equal(
    (Date.parse(from) - Date.parse(before)) % (24 * HOUR_MS),
    0,
    'the same hours of days before',
  )
  refused(t, await call(`GET ${path}/anomalies/0123456789abcdef`), [404, 'not_found'])
  refused(t, await call(`GET ${path}/anomalies/nonsense`), [422, 'validation_error'])
})

t.test(
  'every filter of the anomalies leaves what it names, and pages show each once',
  async (t) => {
    const reply = await call(`GET ${path}/anomalies?limit=200`)
    described(t, openapi.paths[`${path}/anomalies`].get, reply)
    const all: any[] = reply.body.items
    t.ok(all.length >= 6, `${all.length} anomalies`)
    const pages = async (query: string, limit: number): Promise<any[]> => {
      const items: any[] = []
      for (let cursor = ''; ;) {
        const page = await get(`${path}/anomalies?limit=${limit}${query}${cursor}`)
        t.equal(page.has_more, page.next_cursor !== null)
        t.ok(page.items.length === limit || !page.has_more)
        items.push(...page.items)
        if (page.next_cursor === null) return items
        cursor = `&cursor=${page.next_cursor}`
      }
    }
    const values = (name: string): any[] => [...new Set(all.map((each) => each[name]))]
    const cases: [query: string, isMeant: (anomaly: any) => boolean][] = [['', () => true]]
    for (const name of ['state', 'scope', 'kind', 'source', 'severity', 'template_id'])
      for (const value of values(name).filter((each) => each !== null))
        cases.push([`&${name}=${value}`, (each) => each[name] === value])
    const scores = values('score').toSorted((a, b) => a - b)
    const middle = scores[Math.floor(scores.length / 2)]
    cases.push(
      [`&min_score=${middle}`, ({ score }) => score >= middle],
      ['&whole_only=true', ({ part_of: whole }) => whole === null],
      ['&source=shop&source=mail', ({ source }) => source !== 'desk'],
      [
        '&source=shop,mail&kind=silence',
        ({ source, kind: k }) => source === 'mail' && k === 'silence',
      ],
      ['&source=none', () => false],
      [`&at=${iso(hourAgo(10))}`, ({ detected_at: at }) => Date.parse(at) <= hourAgo(10)],
    )
    for (const [query, isMeant] of cases) {
      const wanted = all.filter(isMeant).map(({ id }) => id)
      for (const limit of query === '' ? [1, 2, 3, 200] : [2])
        t.same(
          (await pages(query, limit)).map(({ id }) => id),
          wanted,
          `${query} by ${limit}`,
        )
    }
    const order = all.map(({ started_at: at, id }) => `${at} ${id}`)
    t.same(order, order.toSorted().toReversed(), 'the latest beginning first')
    const { next_cursor: cursor } = await get(`${path}/anomalies?limit=1`)
    const other = await call(`GET ${path}/anomalies?limit=1&kind=spike&cursor=${cursor}`)
    refused(t, other, [422, 'invalid_cursor'])
    refused(t, await call(`GET ${path}/anomalies?cursor=abc`), [422, 'invalid_cursor'])
  },
)

t.test('an error names the wrong field of a request', async (t) => {
  for (const [query, field] of [
    ['at=yesterday', 'at'],
    ['state=open', 'state'],
    ['scope=host', 'scope'],
    ['kind=odd', 'kind'],
    ['severity=FATAL', 'severity'],
    ['min_score=51', 'min_score'],
    ['min_score=high', 'min_score'],
    ['whole_only=2', 'whole_only'],
    ['limit=0', 'limit'],
    ['limit=201', 'limit'],
  ] as const) {
    const reply = await call(`GET ${path}/anomalies?${query}`)
    refused(t, reply, [422, 'validation_error'])
    t.match(JSON.stringify(reply.body.detail.details.errors), field, query)
  }
  refused(t, await call(`GET ${path}/snapshot?at=2026-13-01`), [422, 'validation_error'])
  refused(t, await call(`POST ${path}/snapshot/refresh?at=never`), [422, 'validation_error'])
  refused(t, await call(`DELETE ${path}/snapshot`), [405, 'method_not_allowed'])
})

t.test('viewers read, managers make runs, others are refused', async (t) => {
  const token = viewer.access_token
  const refresh = `POST ${path}/snapshot/refresh`
  refused(t, await call(refresh, { token }), [403, 'forbidden'])
  t.equal((await call(refresh, { token: manager.access_token })).status, 200)
  for (const request of [`GET ${path}/snapshot`, `GET ${path}/anomalies`, refresh])
    refused(t, await call(request, { token: null }), [401, 'unauthorized'])
})

t.test('a deleted source is in no snapshot and no anomaly', async (t) => {
  t.equal((await call('DELETE /api/sources/desk')).status, 200)
  const { items } = await get(`${path}/anomalies?limit=200`)
  t.notOk(items.some(({ source }: any) => source === 'desk'))
  t.ok(items.some(({ source }: any) => source === 'shop'))
  t.notMatch(JSON.stringify(await get(`${path}/snapshot`)), /"desk"|queue is full/)
  const then = await get(`${path}/snapshot?at=${iso(hourAgo(48))}`)
  t.notMatch(JSON.stringify(then), /"desk"/, 'nor in the past')
})
