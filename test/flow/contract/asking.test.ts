/** The questions beside the list: histogram, facets, stats, context, traces, what changed, and the forms of the list. */
import t from 'tap'
import { HOUR_MS } from '../../../src/model/time.js'
import { seeded } from '../../support/landing.js'
import { settled, startLiveService } from '../../support/live-service.js'

// oxlint-disable typescript/no-explicit-any -- the test checks the content of replies

const service = await startLiveService(t)
const { call, ingest } = service

/** The hour before the running one: nothing of it is ahead of now. */
const START_MS = Math.floor(Date.now() / HOUR_MS) * HOUR_MS - HOUR_MS
const at = (seconds: number): string => new Date(START_MS + seconds * 1000).toISOString()
const SPAN = `start_time=${at(0)}&end_time=${at(3599)}`

const get = async (path: string, status = 200): Promise<any> => {
  const reply = await call(`GET ${path}`)
  if (reply.status !== status) throw new Error(`${path}: ${reply.text}`)
  return reply.body
}
const asked = (parameters: Readonly<Record<string, string>>): string =>
  String(new URLSearchParams({ start_time: at(0), end_time: at(3599), ...parameters }))

const line = (seconds: number, message: string, more: object = {}) => ({
  timestamp: at(seconds),
  source: 'shop',
  host: 'web-1',
  severity: 'INFO',
  message,
  ...more,
})

await ingest([
  ...Array.from({ length: 10 }, (_, i) =>
    line(i * 60, `order number ${'abcdefghij'[i]} was paid`, {
      host: i < 7 ? 'web-1' : 'web-2',
      tags: { duration_ms: (i + 1) * 10, user: { id: i % 3 } },
    }),
  ),
  // One event with four occurrences, two of them after a minute's end.
  ...[0, 20, 40, 59].map((after) =>
    line(1830 + after, 'the till is closed', { severity: 'ERROR', host: 'till' }),
  ),
  line(2000, 'GET /pay', {
    type: 'trace',
    trace_id: 'abc123',
    span_id: 's1',
    tags: { duration_ms: 120.5, kind: 'server' },
  }),
  line(2001, 'charge card', {
    type: 'trace',
    source: 'bank',
    severity: 'ERROR',
    trace_id: 'ABC123',
    span_id: 's2',
    tags: { duration_ms: 80, parent_span_id: 's1', status_message: 'declined' },
  }),
  line(2002, 'write audit', {
    type: 'trace',
    trace_id: 'abc123',
    span_id: 's3',
    tags: { parent_span_id: 'gone' },
  }),
  line(2001, 'card was declined', { trace_id: 'abc123', severity: 'WARNING' }),
])
await settled(service)

void t.test('histogram, facets, stats and the list count the same', async (t) => {
  const query = asked({ q: 'source:shop -trace:abc123', by: 'severity', buckets: '60' })
  const histogram = await get(`/api/logs/histogram?${query}`)
  t.equal(histogram.step_s, 60)
  t.equal(histogram.total, 14)
  t.equal(histogram.unique_events, 11)
  t.equal(histogram.complete_from, at(0))
  t.same(histogram.values, [
    { value: 'INFO', count: 10 },
    { value: 'ERROR', count: 4 },
  ])
  const closed = histogram.buckets.filter(({ values }: any) => values.ERROR !== undefined)
  t.same(
    closed.map((bucket: any) => [bucket.t, bucket.total, bucket.values.ERROR]),
    [
      [at(1800), 2, 2],
      [at(1860), 2, 2],
    ],
    'each occurrence counts in the bucket of its own time',
  )
  const facets = await get(
    `/api/logs/facets?${asked({ q: 'source:shop -trace:abc123', fields: 'host,user.id' })}`,
  )
  t.equal(facets.total, 14)
  t.same(facets.facets[0], {
    field: 'host',
    distinct: 3,
    values: [
      { value: 'web-1', count: 7 },
      { value: 'till', count: 4 },
      { value: 'web-2', count: 3 },
    ],
  })
  t.same(facets.facets[1].values[0], { value: '0', count: 4 })
  const stats = await get(
    `/api/logs/stats?${asked({
      q: 'source:shop -trace:abc123',
      by: 'host',
      metrics: 'count,p50(duration_ms),max(duration_ms),distinct(user.id)',
      step: '30m',
    })}`,
  )
  t.equal(stats.group_count, 3)
  t.same(stats.groups[0], {
    by: { host: 'web-1' },
    values: { count: 7, 'p50(duration_ms)': 40, 'max(duration_ms)': 70, 'distinct(user.id)': 3 },
    series: [
      {
        t: at(0),
        values: {
          count: 7,
          'p50(duration_ms)': 40,
          'max(duration_ms)': 70,
          'distinct(user.id)': 3,
        },
      },
    ],
  })
  t.equal(stats.groups[1].values['p50(duration_ms)'], null, 'no number at the till')
  const list = await get(`/api/logs?${asked({ q: 'source:shop -trace:abc123' })}`)
  t.equal(list.items.length, 11)
  t.equal(
    list.items.reduce((sum: number, event: any) => sum + event.occurrence_count, 0),
    14,
  )
})

void t.test('a range beyond all events has one empty bucket', async (t) => {
  const range = { start_time: '2200-01-01', end_time: '2201-01-01' }
  const counts = await get(`/api/logs/histogram?${asked(range)}`)
  t.match(counts, { start: counts.end, total: 0, unique_events: 0, buckets: [{ total: 0 }] })
})

void t.test('an event that began before the range counts with what repeats it in it', async (t) => {
  const range = { q: 'host:till', start_time: at(1860), end_time: at(1879) }
  const list = await get(`/api/logs?${asked(range)}`)
  t.same(
    list.items.map((event: any) => [event.timestamp, event.occurrence_count]),
    [[at(1830), 1]],
  )
  const histogram = await get(`/api/logs/histogram?${asked({ ...range, by: 'host' })}`)
  t.same([histogram.total, histogram.unique_events], [1, 1])
  const whole = await get(`/api/logs/${list.items[0].id}`)
  t.equal(whole.occurrence_count, 4)
})

void t.test('rollups answer what they count by, and say so', async (t) => {
  for (const [by, q, from] of [
    ['severity', 'source:shop', 'rollup'],
    ['source', 'severity:error', 'rollup'],
    ['priority', '', 'rollup'],
    ['host', 'severity>=warning', 'events'],
    ['user.id', '', 'events'],
  ] as const)
    t.equal((await get(`/api/logs/histogram?${asked({ by, q })}`)).answered_from, from, by)
  const byHour = await get(
    `/api/logs/histogram?${asked({ by: 'host', buckets: '2', end_time: at(3600) })}`,
  )
  t.equal(byHour.answered_from, 'rollup')
  t.equal(byHour.total, 18)
})

void t.test('a list has both orders, chosen fields, cut messages and lines', async (t) => {
  const parameters = { q: 'host:web-1,web-2 paid', order: 'asc', limit: '4' }
  const first = await get(
    `/api/logs?${asked({ ...parameters, fields: 'id,message', message_cut: '12' })}`,
  )
  t.same(first.items[0], { id: first.items[0].id, message: 'order number…' })
  const detail = `/api/logs/${first.items[0].id}`
  t.equal((await get(`${detail}?message_cut=12`)).message, 'order number…')
  t.match((await get(detail)).message, /^order number \w/)
  const around = await get(`${detail}/context?before=1&after=1&message_cut=5`)
  t.match(
    [around.event, ...around.before.items, ...around.after.items].map(({ message }) => message),
    [/^.{5}…$/, /^.{5}…$/],
  )
  const second = await get(`/api/logs?${asked({ ...parameters, cursor: first.next_cursor })}`)
  t.match(second.items[0].message, /number e/)
  const back = await get(
    `/api/logs?${asked({ q: parameters.q, limit: '4', order: 'desc', cursor: second.next_cursor })}`,
  )
  t.match(back.items[0].message, /number g/, 'a cursor goes on in the other order')
  const path = `/api/logs?${asked({ ...parameters, limit: '6' })}`
  const lines = await call(`GET ${path}`, { headers: { Accept: 'application/x-ndjson' } })
  t.match(lines.headers.get('content-type'), /application\/x-ndjson/)
  t.equal(lines.text.trim().split('\n').length, 6)
  const [, next = ''] = /<(.+)>; rel="next"/.exec(lines.headers.get('link') ?? '') ?? []
  t.equal((await get(next)).items.length, 4, 'the header leads to the rest')
  const json = await call(`GET ${path}`, {
    headers: { Accept: 'application/x-ndjson;q=0.5, application/json' },
  })
  t.equal(json.body.items.length, 6, 'JSON where it is preferred')
  await get(`/api/logs?${asked({ limit: '1001' })}`, 422)
  await get(`/api/logs?${asked({ fields: 'nothing' })}`, 422)
})

void t.test('the context of an event has what was stored around it', async (t) => {
  const [event] = (await get(`/api/logs?${asked({ q: '"number e"' })}`)).items
  const path = `/api/logs/${event.id}/context?before=2&after=2`
  const context = await get(path)
  const texts = (side: any): string[] => side.items.map(({ message }: any) => message.slice(13, 14))
  t.equal(context.event.id, event.id)
  t.same(
    [texts(context.before), texts(context.after)],
    [
      ['d', 'c'],
      ['f', 'g'],
    ],
  )
  const further = await get(`${path}&cursor=${encodeURIComponent(context.after.next_cursor)}`)
  t.same([texts(further.before), texts(further.after)], [[], ['h', 'i']])
  const same = await get(`/api/logs/${event.id}/context?after=200&same=source,host`)
  t.ok(same.after.items.every(({ host }: any) => host === 'web-1'))
  t.notOk(same.after.has_more)
  await get(`${path}&same=host&cursor=${encodeURIComponent(context.after.next_cursor)}`, 422)
  await get('/api/logs/9007199254740991/context', 404)
})

void t.test('a trace is a tree of spans with its logs', async (t) => {
  const trace = await get('/api/traces/abc123')
  t.same(
    trace.spans.map((span: any) => [span.span_id, span.depth, span.has_parent, span.duration_ms]),
    [
      ['s1', 0, false, 120.5],
      ['s2', 1, true, 80],
      ['s3', 0, false, null],
    ],
  )
  t.match(trace.spans[1], {
    name: 'charge card',
    source: 'bank',
    status: 'error',
    status_message: 'declined',
    offset_ms: 1000,
  })
  t.same(
    trace.logs.map(({ message }: any) => message),
    ['card was declined'],
  )
  t.match(trace, { error_count: 1, sources: ['bank', 'shop'], duration_ms: 2000 })
  await get('/api/traces/none', 404)
})

void t.test(
  'whatever its spans name as parents, a trace has each once, behind its parent',
  async (t) => {
    const seed = Number(process.env['SEED'] ?? 4)
    t.comment(`SEED=${seed}`)
    const random = seeded(seed)
    const below = (most: number): number => Math.floor(random() * most)
    const durations = [5, '5', 0.25, 1e20, '1e999', -1, '', true, [5]]
    const SHOWN = new Map<unknown, number>([
      [5, 5],
      ['5', 5],
      [0.25, 0.25],
    ])
    // Ids occur twice or not at all, and in both cases; parents may be the span itself or one below it.
    const sent = Array.from({ length: 80 }, (_, i) => ({
      ...line(2100 + below(5), `step ${i}`, { type: 'trace', trace_id: 'forest' }),
      span_id: ['', 'S', 's'][below(3)] + String(below(60)),
      tags: { parent_span_id: `s${below(60)}`, duration_ms: durations[below(durations.length)] },
    }))
    await ingest(sent)
    await settled(service)
    const { spans, duration_ms: whole } = await get('/api/traces/FOREST')
    t.equal(spans.length, sent.length)
    t.same(new Set(spans.map(({ name }: any) => name)), new Set(sent.map(({ message }) => message)))
    t.ok(whole <= 4005, 'what is no duration counts for nothing')
    const inOrder = spans.toSorted(
      (a: any, b: any) => a.offset_ms - b.offset_ms || a.event_id - b.event_id,
    )
    const named = (id: string): any =>
      inOrder.find(({ span_id: own }: any) => own.toLowerCase() === id.toLowerCase())
    const path: any[] = []
    for (const span of spans) {
      const parent = named(span.parent_span_id)
      path.length = span.depth
      t.equal(span.has_parent, parent !== undefined)
      if (span.depth > 0) t.equal(path.at(-1), parent, `${span.name} is below its parent`)
      else t.ok(isRoot(span), `${span.name} is a root`)
      path.push(span)
      const sentSpan = sent.find(({ message }: any) => message === span.name)
      t.equal(span.duration_ms, SHOWN.get(sentSpan?.tags.duration_ms) ?? null)
    }
    /** Whether it has no other span above it, or is above itself. */
    function isRoot(span: any): boolean {
      const passed = new Set<any>()
      for (let at = span; at !== undefined && !passed.has(at); at = named(at.parent_span_id))
        passed.add(at)
      const parent = named(span.parent_span_id)
      return parent === undefined || [...passed].some((one) => named(one.parent_span_id) === span)
    }
  },
)

void t.test('what changed in a span, against the time before', async (t) => {
  const body = { q: 'source:shop', start_time: at(1800), end_time: at(1919) }
  const { status, body: reply } = await call('POST /api/ai-insights/explain', { json: body })
  t.equal(status, 200)
  t.match(reply, { total_before: 0, total_during: 4, from: at(1800), before_from: at(1680.999) })
  t.match(reply.hosts[0], { name: 'till', explains: 1, share_during: 1 })
  t.match(reply.templates[0], { text: /till/, has_more_errors: true })
  const faulty = await call('POST /api/ai-insights/explain', { json: { ...body, q: '"' } })
  t.equal(faulty.status, 422)
  t.match(faulty.body.detail.details.errors[0], { in: 'body', path: 'q', position: 0 })
})

void t.test('what is usual for a query over time', async (t) => {
  const DAYS = 10
  // Three an hour, and a burst of 60 in the hour that is asked about.
  const tide = Array.from({ length: DAYS * 24 }, (_, i) => -3600 * (DAYS * 24 - i)).flatMap(
    (hour) =>
      [300, 1500, 2700].map((second) => line(hour + second, 'high water', { source: 'tide' })),
  )
  const burst = Array.from({ length: 60 }, (_, i) => line(i * 50, 'a wave', { source: 'tide' }))
  await ingest([...tide, ...burst])
  await settled(service)
  const usual = (parameters: Readonly<Record<string, string>>): Promise<any> =>
    get(`/api/ai-insights/usual?${new URLSearchParams({ end_time: at(3599), ...parameters })}`)
  const day = await usual({ q: 'source:tide', start_time: at(-86_400), step_s: '3600' })
  t.equal(day.bars.length, 25)
  for (const { expected, low, high } of day.bars)
    t.ok(expected > 2.5 && expected < 3.5 && low <= expected && high < 30, `${low} to ${high}`)
  const half = await usual({ q: 'source:tide severity:info', start_time: at(0), step_s: '600' })
  t.equal(half.bars.length, 6)
  t.ok(Math.abs(half.bars[0].expected - day.bars[24].expected / 6) < 0.01)
  const wide = await usual({ q: 'source:tide', start_time: at(-86_400 * 2), step_s: '21600' })
  t.ok(Math.abs(wide.bars.at(-3).expected - 18) < 2)

  await call(`POST /api/ai-insights/snapshot/refresh`)
  const { anomalies } = await usual({ q: 'source:tide', start_time: at(0), step_s: '60' })
  t.match(anomalies, [{ source: 'tide', kind: 'spike', observed: 60 }])
  const others = await usual({ q: 'source:shop', start_time: at(0), step_s: '60' })
  t.same(others.anomalies, [])
  t.same(await usual({ q: 'source:tide wave', start_time: at(0) }), { bars: [], anomalies: [] })
  t.same(await usual({ q: 'source:bank', start_time: at(0) }), { bars: [], anomalies: [] })
  await get(`/api/ai-insights/usual?${SPAN}&step_s=7`, 422)
  await get(`/api/ai-insights/usual?${SPAN}&step_s=1`, 422)
})

void t.test('a wrong parameter is answered by 422', async (t) => {
  for (const path of [
    `histogram?${SPAN}&by=message`,
    `histogram?${SPAN}&by=source,host`,
    `histogram?${SPAN}&buckets=301`,
    `facets?${SPAN}&fields=count`,
    `stats?${SPAN}&metrics=median(x)`,
    `stats?${SPAN}&metrics=avg(host)`,
    `stats?${SPAN}&step=1s`,
    `stats?${SPAN}&step=1x`,
    `facets?${SPAN}&q=%22`,
  ]) {
    const { detail } = await get(`/api/logs/${path}`, 422)
    t.equal(detail.code, 'validation_error', path)
  }
})

void t.test('functions of metrics are known in any case', async (t) => {
  const { groups } = await get(`/api/logs/stats?${SPAN}&metrics=COUNT,P95(duration_ms)`)
  const lower = await get(`/api/logs/stats?${SPAN}&metrics=count,p95(duration_ms)`)
  t.same(Object.values(groups[0].values), Object.values(lower.groups[0].values))
})

t.test('a regular expression alone may be asked of a whole hour', async (t) => {
  const q = encodeURIComponent('/timeout/')
  const statusOf = async (start: string, end: string): Promise<number> =>
    (await call(`GET /api/logs?q=${q}&start_time=${start}&end_time=${end}`)).status
  t.equal(await statusOf(at(0), at(3600)), 200)
  t.equal(await statusOf('now-1h', 'now'), 200)
  t.equal(await statusOf(at(0), at(3602)), 422)
  t.equal(await statusOf('now-50m', 'now%2B1d'), 200, 'what is to come is not read')
  const { status } = await call(`GET /api/logs?q=${q}&source=tide&start_time=${at(0)}`)
  t.equal(status, 200, 'a parameter is a clause too')
})

void t.test('a series lacks no step, and more steps than it may have are refused', async (t) => {
  const groups = 100
  const steps = 301
  const send = async (stepOf: (step: number) => number): Promise<void> => {
    const events = Array.from({ length: groups * steps }, (_, i) => {
      const timestamp = new Date(stepOf(Math.floor(i / groups))).toISOString()
      return { ...line(0, `step ${i}`), source: 'steps', timestamp, tags: { group: i % groups, i } }
    })
    while (events.length > 0) await ingest(events.splice(0, 5_000))
    await settled(service)
  }
  // The range begins within the first step and ends within the last.
  await send((step) => START_MS + step * 1000 + (step === 0 ? 700 : 100))
  const parameters = { q: 'source:steps', by: 'group', top: String(groups) }
  const range = { start_time: at(0.6), end_time: at(300.5), step: '1s' }
  for (const metrics of ['count', 'count,max(i)', 'p50(i)']) {
    const reply = await get(`/api/logs/stats?${asked({ ...parameters, ...range, metrics })}`)
    const lengths = reply.groups.map(({ series }: any) => series.length)
    t.same(
      lengths,
      Array.from({ length: groups }, () => steps),
      metrics,
    )
  }
  // Clocks that are ahead have steps beyond those from the start until now.
  await send((step) => Date.now() + (step + 1) * 60_000)
  const open = new URLSearchParams({
    ...parameters,
    start_time: at(0),
    step: '1m',
    metrics: 'max(i)',
  })
  const refused = await get(`/api/logs/stats?${String(open)}`, 422)
  t.match(refused.detail.details.errors, [{ path: 'step', message: /^must be longer/ }])
})
