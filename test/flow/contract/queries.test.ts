import { createHmac } from 'node:crypto'
import t from 'tap'
import {
  WEBHOOK_SECRET,
  collect,
  eventually,
  settled,
  startLiveService,
} from '../../support/live-service.js'
import { SECOND_MS, MINUTE_MS, HOUR_MS, DAY_MS } from '../../../src/model/time.js'

// oxlint-disable typescript/no-explicit-any -- the test checks the content of replies

const service = await startLiveService(t)
const { call } = service

const nowMs = Date.now()
const ago = (ms: number): string => new Date(nowMs - ms).toISOString()

const get = async (path: string): Promise<any> => {
  const reply = await call(`GET ${path}`)
  if (reply.status !== 200) throw new Error(`${path}: ${reply.text}`)
  return reply.body
}
const status = async (path: string): Promise<number> => (await call(`GET ${path}`)).status
const list = async (query: string): Promise<string[]> =>
  (await get(`/api/logs?${query}`)).items.map((item: any) => item.message).toSorted()

await call('POST /api/applications', { json: { name: 'web' } })
const [app] = await get('/api/applications')
await call('POST /api/sources', { json: { name: 'front', application_id: app.id } })
await service.ingest([
  {
    source: 'front',
    severity: 'DEBUG',
    message: 'apple',
    environment: 'production',
    timestamp: ago(5 * SECOND_MS),
  },
  {
    source: 'front',
    severity: 'ERROR',
    message: 'banana',
    environment: 'staging',
    timestamp: ago(2 * HOUR_MS),
  },
  {
    source: 'back',
    severity: 'CRITICAL',
    message: 'cherry',
    environment: 'dev',
    timestamp: ago(3 * DAY_MS),
  },
  {
    source: 'back',
    type: 'metric',
    message: 'damson',
    host: 'host-seven',
    timestamp: ago(20 * DAY_MS),
  },
  {
    source: 'back',
    type: 'trace',
    message: 'elder',
    trace_id: 'abc123',
    timestamp: ago(31 * DAY_MS),
  },
  { source: 'back', type: 'event', message: 'fig', tags: { a: 'b' }, timestamp: ago(400 * DAY_MS) },
])
await settled(service)

t.test('an item carries the fields of the interface, a page its cursor', async (t) => {
  const page = await get('/api/logs')
  t.same(Object.keys(page).toSorted(), ['has_more', 'items', 'next_cursor'])
  const fields = [
    'id',
    'timestamp',
    'source',
    'type',
    'severity',
    'priority',
    'message',
    'template_id',
  ].concat(['host', 'tags', 'occurrence_count', 'trace_id', 'environment', 'last_seen'])
  t.same(Object.keys(page.items[0]).toSorted(), fields.toSorted())
  const detail = await get(`/api/logs/${page.items[0].id}`)
  const more = [
    'span_id',
    'summary',
    'priority_confidence',
    'priority_source',
    'model_version',
  ].concat(['dedup_key', 'application'])
  t.same(Object.keys(detail).toSorted(), [...fields, ...more].toSorted())
  t.match(detail.dedup_key, /^sha256:[0-9a-f]{64}$/)
  t.match(detail.timestamp, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
  t.ok(detail.priority_confidence >= 0 && detail.priority_confidence <= 1)
})

t.test('list-events: severity, priority, type and source take several values', async (t) => {
  t.same(await list('severity=ERROR&severity=DEBUG'), ['apple', 'banana'])
  t.same(await list('severity=ERROR,CRITICAL'), ['banana', 'cherry'])
  t.same(await list('type=metric'), ['damson'])
  t.same(await list('type=metric,log&source=back'), ['cherry', 'damson'])
  t.same(await list('source=front'), ['apple', 'banana'])
  const all = (await get('/api/logs')).items
  for (const priority of ['P1', 'P2', 'P3', 'P4']) {
    const expected = all.filter((item: any) => item.priority === priority)
    t.same(await list(`priority=${priority}`), expected.map((item: any) => item.message).toSorted())
  }
})

t.test('list-events: application names the linked sources', async (t) => {
  t.same(await list('application=web'), ['apple', 'banana'])
  t.same(await list('application=none'), [])
  t.same(await list('application=web&source=back'), [])
})

t.test('list-events: environment matches short and long names', async (t) => {
  t.same(await list('environment=prod&source=front'), ['apple'])
  t.same(await list('environment=staging,dev'), ['banana', 'cherry'])
})

t.test('list-events: is_error_or_worse leaves ERROR and CRITICAL', async (t) => {
  t.same(await list('is_error_or_worse=true'), ['banana', 'cherry'])
  t.equal((await list('is_error_or_worse=false')).length, 4)
  t.same(await list('is_error_or_worse=true&severity=ERROR,INFO'), ['banana'])
})

t.test('list-events: search reads message, host and trace_id', async (t) => {
  t.same(await list('search=BANANA'), ['banana'])
  t.same(await list('search=seven'), ['damson'])
  t.same(await list('search=abc123&start_time=2000-01-01'), ['elder'])
  t.same(await list('search=bana*'), ['banana'])
  t.same(await list('search=bana'), [])
})

t.test('list-events: template_id leaves the events of those templates', async (t) => {
  const [banana] = (await get('/api/logs?search=banana')).items
  const [damson] = (await get('/api/logs?search=damson')).items
  t.same(await list(`template_id=${banana.template_id}`), ['banana'])
  const both = `${banana.template_id},${damson.template_id}`
  t.same(await list(`template_id=${both}`), ['banana', 'damson'])
  t.equal(await status('/api/logs?template_id=x'), 422)
})

t.test('list-events: start_time is 30 days ago by default, end_time is open', async (t) => {
  t.same(await list(''), ['apple', 'banana', 'cherry', 'damson'])
  t.equal((await list('start_time=2000-01-01')).length, 6)
  t.same(await list(`start_time=${ago(40 * DAY_MS)}&end_time=${ago(10 * DAY_MS)}`), [
    'damson',
    'elder',
  ])
  for (const before of ['0001-01-01', '1969-12-31T23:59:59Z', '1970-01-01T00:00:00%2B01:00']) {
    t.equal((await list(`start_time=${before}`)).length, 6, before)
    t.same(await list(`start_time=${before}&search=apple&severity=DEBUG`), ['apple'])
    t.same(await list(`end_time=${before}&start_time=0001-01-01`), [], before)
  }
  for (const none of ['2026-02-30', '2026-11-21T24:00:00Z', '2026-13-01', '0000-01-01'])
    t.equal(await status(`/api/logs?start_time=${none}`), 422, none)
})

t.test('list-events: limit is 1 to 1000 and 50 by default, cursors continue a page', async (t) => {
  for (const limit of [0, 1001, 'x', 1.5]) t.equal(await status(`/api/logs?limit=${limit}`), 422)
  for (const limit of [1, 1000]) t.equal(await status(`/api/logs?limit=${limit}`), 200)
  await service.ingest(
    Array.from({ length: 60 }, (_, i) => ({ source: 'many', message: `number ${i}` })),
  )
  await settled(service)
  const first = await get('/api/logs?source=many')
  t.equal(first.items.length, 50)
  t.equal(first.has_more, true)
  const next = encodeURIComponent(first.next_cursor)
  const second = await get(`/api/logs?source=many&cursor=${next}`)
  t.equal(second.items.length, 10)
  t.equal(second.has_more, false)
  t.equal(second.next_cursor, null)
  const ids = [...first.items, ...second.items].map((item: any) => item.id)
  t.equal(new Set(ids).size, 60)
  const other = await call(`GET /api/logs?source=back&cursor=${next}`)
  t.equal(other.body.detail.code, 'invalid_cursor', 'a cursor belongs to its filters')
  const forged = `${first.next_cursor.slice(0, -2)}${first.next_cursor.endsWith('AA') ? 'BB' : 'AA'}`
  const changed = await call(`GET /api/logs?source=many&cursor=${encodeURIComponent(forged)}`)
  t.equal(changed.body.detail.code, 'invalid_cursor', 'and is not to be changed')
})

t.test('top templates: limit is 20 by default and at most 200', async (t) => {
  await service.ingest(
    Array.from('abcdefghijklmnopqrstuvwxy').map((letter) => ({
      source: 'words',
      message: `${letter}one ${letter}two ${letter}three ${letter}four`,
    })),
  )
  await settled(service)
  t.equal((await get('/api/logs/meta/templates')).length, 20)
  const all = await get('/api/logs/meta/templates?limit=200')
  t.ok(all.length > 20)
  for (const limit of [0, 201])
    t.equal(await status(`/api/logs/meta/templates?limit=${limit}`), 422)
  const [first, , third] = all
  const asked = `${third.template_id},${first.template_id},0123456789abcdef`
  t.same(await get(`/api/logs/meta/templates?template_id=${asked}`), [first, third])
  t.equal(await status('/api/logs/meta/templates?template_id=word'), 422)
  const fields = ['template_id', 'template_text', 'template', 'first_seen', 'last_seen'].concat([
    'source',
    'occurrence_count',
    'severity',
    'priority',
    'confidence',
    'model_version',
  ])
  t.same(Object.keys(all[0]).toSorted(), fields.toSorted())
  t.equal(all[0].template, all[0].template_text)
})

const GRANULARITY = {
  '5s': 'second',
  '1m': 'minute',
  '5m': 'minute',
  '10m': 'minute',
  '15m': 'minute',
  '1h': 'hour',
  '2h': 'hour',
  '24h': 'hour',
  '7d': 'day',
  '30d': 'day',
  '1mo': 'day',
}
const STEP: Readonly<Record<string, number>> = {
  second: 5 * SECOND_MS,
  minute: MINUTE_MS,
  hour: HOUR_MS,
  day: DAY_MS,
}

t.test('time series: each window has the granularity and the step of the table', async (t) => {
  const fresh = () => service.ingest([{ source: 'ticking', message: 'tick' }])
  await fresh()
  await settled(service)
  for (const [window, granularity] of Object.entries(GRANULARITY)) {
    if (window === '5s') continue
    const series = await get(`/api/logs/meta/timeseries?window=${window}&source=ticking`)
    t.match(series, { window, granularity, offset: 0, has_more: false }, window)
    const step = STEP[granularity] ?? 0
    for (const bucket of series.buckets) t.equal(Date.parse(bucket.t) % step, 0, bucket.t)
  }
  const seconds = await get('/api/logs/meta/timeseries?window=5s&granularity=second&source=ticking')
  t.equal(seconds.granularity, 'second')
  for (const bucket of seconds.buckets) t.equal(Date.parse(bucket.t) % (5 * SECOND_MS), 0)
  t.equal(await status('/api/logs/meta/timeseries?window=3h'), 422)
  t.equal(await status('/api/logs/meta/timeseries?granularity=week'), 422)
})

t.test('time series: granularity widens only when the window has no data', async (t) => {
  const auto = await get('/api/logs/meta/timeseries?window=1m&source=back')
  t.equal(auto.granularity, 'day')
  const explicit = await get('/api/logs/meta/timeseries?window=1m&granularity=hour&source=back')
  t.equal(explicit.granularity, 'hour')
  const near = await get('/api/logs/meta/timeseries?window=1h&source=front')
  t.equal(near.granularity, 'hour')
})

t.test(
  'time series: 24h, auto, 10 buckets and offset 0 by default, a month back at most',
  async (t) => {
    const series = await get('/api/logs/meta/timeseries?source=back')
    t.match(series, { window: '24h', granularity: 'day', offset: 0 })
    t.same(
      series.buckets.map((bucket: any) => bucket.t.slice(0, 10)),
      [ago(31 * DAY_MS), ago(20 * DAY_MS), ago(3 * DAY_MS)].map((time) => time.slice(0, 10)),
      'anchored on the latest event, ascending',
    )
    const newest = await get('/api/logs/meta/timeseries?source=back&limit=1')
    t.equal(newest.has_more, true)
    const older = await get('/api/logs/meta/timeseries?source=back&limit=1&offset=2')
    t.match(older, { offset: 2, has_more: false })
    for (const query of ['limit=0', 'limit=51', 'offset=-1'])
      t.equal(await status(`/api/logs/meta/timeseries?${query}`), 422, query)
    t.equal(await status('/api/logs/meta/timeseries?limit=50'), 200)
    const spread = Array.from({ length: 14 }, (_, i) => ({
      source: 'spread',
      message: 'beat',
      timestamp: ago(i * HOUR_MS),
    }))
    await service.ingest(spread)
    await settled(service)
    t.equal((await get('/api/logs/meta/timeseries?source=spread')).buckets.length, 10)
  },
)

t.test('calendar: days is 365 by default and 1 to 730, priority is optional', async (t) => {
  const days = async (query: string): Promise<string[]> =>
    (await get(`/api/logs/meta/calendar${query}`)).map((each: any) => each.day)
  const year = await days('')
  t.notOk(year.includes(ago(400 * DAY_MS).slice(0, 10)))
  t.ok(year.includes(ago(31 * DAY_MS).slice(0, 10)))
  t.ok((await days('?days=730')).includes(ago(400 * DAY_MS).slice(0, 10)))
  t.equal((await days('?days=1')).length, 1)
  for (const n of [0, 731]) t.equal(await status(`/api/logs/meta/calendar?days=${n}`), 422)
  t.equal(await status('/api/logs/meta/calendar?priority=P5'), 422)
})

t.test(
  'alerts: newest first, filtered by read and severity, 50 by default and at most 200',
  async (t) => {
    const ids: string[] = []
    for (let i = 0; i < 52; i++) {
      const severity = i % 2 === 0 ? 'P1' : 'P3'
      ids.push((await call('POST /api/alerts', { json: { title: `a${i}`, severity } })).body.id)
    }
    const first = await get('/api/alerts')
    t.equal(first.items.length, 50)
    t.equal(first.items[0].id, ids.at(-1))
    t.match(first.items[0], { read: false, event_ids: [], related_source: null })
    const rest = await get(`/api/alerts?cursor=${encodeURIComponent(first.next_cursor)}`)
    t.equal(rest.items.length, 2)
    t.equal((await call(`POST /api/alerts/${ids[0]}/read`)).body.read, true)
    t.equal((await get('/api/alerts?read=true')).items.length, 1)
    t.equal((await get('/api/alerts?severity=P3&limit=200')).items.length, 26)
    t.same((await call('POST /api/alerts/read-all')).body, { updated: 51 })
    t.equal((await get('/api/alerts?read=false')).items.length, 0)
    for (const query of ['limit=0', 'limit=201', 'severity=P9', 'read=perhaps'])
      t.equal(await status(`/api/alerts?${query}`), 422, query)
    t.equal((await call('POST /api/alerts/00000000-0000-4000-8000-000000000000/read')).status, 404)
  },
)

t.test('partial=true changes nothing while every shard answers', async (t) => {
  const span = `start_time=2000-01-01T00:00:00Z&end_time=${new Date().toISOString()}`
  for (const path of [`/api/logs?limit=3&${span}`, `/api/logs/histogram?${span}`]) {
    const [whole, part] = [await call(`GET ${path}`), await call(`GET ${path}&partial=true`)]
    t.equal(part.status, 200)
    t.equal(part.headers.get('x-missing-shards'), null)
    for (const name of ['items', 'total', 'buckets']) t.same(part.body[name], whole.body[name])
  }
})

t.test(
  'a source has eight fields; create appends its name to the hosts of the application',
  async (t) => {
    const made = await call('POST /api/sources', {
      json: { name: 'third', type: 'poll', connector: 'prometheus', application_id: app.id },
    })
    t.equal(made.status, 201)
    t.same(made.body, {
      name: 'third',
      type: 'poll',
      connector: 'prometheus',
      status: 'pending',
      enabled: true,
      application_id: app.id,
      last_event_at: null,
      dead_letters_24h: 0,
      retention_days: null,
    })
    t.same((await get(`/api/applications/${app.id}`)).hosts, ['front', 'third'])
    const [front] = (await get('/api/sources')).filter((each: any) => each.name === 'front')
    t.match(front, {
      type: 'push',
      connector: 'custom',
      status: 'active',
      last_event_at: ago(5 * SECOND_MS),
    })
    for (const name of ['', 'x'.repeat(121), 'a\nb'])
      t.equal((await call('POST /api/sources', { json: { name } })).status, 422)
    t.equal((await call('POST /api/sources/third/toggle')).status, 422, 'enabled is required')
    t.equal((await call('POST /api/sources/none/toggle?enabled=true')).status, 404)
  },
)

t.test('an upload becomes events of a source that is registered by it', async (t) => {
  const upload = (name: string, type: string, text: string) => {
    const body = new FormData()
    body.set('file', new Blob([text]), `x.${type}`)
    body.set('file_type', type)
    body.set('source_name', name)
    body.set('application_id', app.id)
    return call('POST /api/sources/ephemeral', { body })
  }
  const files: readonly (readonly [string, string])[] = [
    ['csv', 'severity,message\nERROR,one\nINFO,two\n'],
    ['json', '[{"message":"one"},{"message":"two"}]'],
    ['txt', 'ERROR one\nINFO two\n'],
  ]
  for (const [type, text] of files) {
    const reply = await upload(`up-${type}`, type, text)
    t.equal(reply.status, 202, type)
    t.match(reply.body, {
      status: String,
      events_processed: 2,
      source_name: `up-${type}`,
      detail: { sent: 2, errors: 0 },
    })
    // Other instances know a source when its messages are stored.
    const source = await eventually(
      async () => (await get('/api/sources')).find((s: any) => s.name === `up-${type}`),
      (found) => found !== undefined,
    )
    t.match(source, { type: 'file', connector: 'custom', application_id: app.id })
  }
  t.equal((await upload('x'.repeat(120), 'txt', 'hello')).status, 202, '120 characters')
  t.equal((await upload('', 'txt', 'hello')).status, 422)
  const ragged = await upload(
    'up-ragged',
    'csv',
    'severity,message\nERROR,one\nERROR,one,too many\n',
  )
  t.match(ragged.body, { detail: { sent: 1, errors: 1 } })
  const letters = await eventually(
    () => get('/api/monitoring/dead-letters?source=up-ragged'),
    (page) => page.items.length > 0,
  )
  t.match(letters.items, [{ source: 'up-ragged', reason: 'invalid_event' }])
})

const deliver = (json: object) => {
  const body = JSON.stringify(json)
  const signature = createHmac('sha256', WEBHOOK_SECRET).update(body).digest('hex')
  return collect(service, 'POST /webhooks/scm', { body, headers: { 'X-Scm-Token': signature } })
}

t.test('a webhook becomes a canonical event, once in 300 seconds', async (t) => {
  const pipeline = {
    object_kind: 'pipeline',
    project: { name: 'pump', path_with_namespace: 'plant/pump' },
    user: { username: 'mlind' },
    repository: { homepage: 'https://git.example.org/plant/pump' },
    object_attributes: {
      id: 31,
      ref: 'main',
      sha: 'a'.repeat(40),
      status: 'failed',
      url: 'https://git.example.org/plant/pump/-/pipelines/31',
    },
  }
  t.match(await deliver(pipeline), { status: 202, body: { status: 'accepted', events: 1 } })
  t.match(await deliver(pipeline), { status: 202, body: { status: 'duplicate', events: 0 } })
  await call('DELETE /api/sources/scm.plant%2Fpump')
  t.match(await deliver(pipeline), { body: { status: 'accepted' } }, 'the first one was deleted')
  t.match(await deliver(pipeline), { body: { status: 'duplicate' } })
  const other = await deliver({ ...pipeline, object_kind: 'wiki_page' })
  t.match(other, { status: 202, body: { status: 'ignored', events: 0 } })
  await settled(service)
  const [item] = (await get('/api/logs?source=scm.plant/pump')).items
  t.match(await get(`/api/logs/${item.id}`), {
    source: 'scm.plant/pump',
    type: 'event',
    severity: 'CRITICAL',
    environment: 'production',
    message: `Pipeline failed on main (${'a'.repeat(40)})`,
    summary: `Pipeline #31 failed for commit ${'a'.repeat(40)}`,
    tags: {
      scm_event_type: 'pipeline',
      triggered_by: 'mlind',
      repo_url: 'https://git.example.org/plant/pump',
      url: 'https://git.example.org/plant/pump/-/pipelines/31',
      pipeline_id: '31',
      status: 'failed',
      ref: 'main',
      sha: 'a'.repeat(40),
    },
    dedup_key: /^sha256:[0-9a-f]{64}$/,
  })
})
