import t from 'tap'
import type { Count } from '../../../src/alerting/count.js'
import { createCountReader, type CountRequest } from '../../../src/alerting/counts.js'
import type { RuleFields } from '../../../src/alerting/rule-fields.js'
import { planRule } from '../../../src/alerting/rule.js'
import { asRule } from '../../../src/alerting/rules.js'
import { toWords } from '../../../src/model/words.js'
import { DAY_MS, HOUR_MS } from '../../../src/model/time.js'
import { createTestDatabase, startTestServer } from '../../support/clickhouse.js'
import { applySchema, tagColumns } from '../../support/landing.js'

const server = await startTestServer()
const { store, drop } = await createTestDatabase(server)
await applySchema(store)

t.teardown(async () => {
  await drop()
  await server.stop()
})

const NOW_MS = Math.floor(Date.now() / 1000) * 1000
/** What ingest stores of an event's words. */
const isWide = (text: string): boolean => /[^\0-\x7f]/.test(text)

interface Given {
  readonly message: string
  readonly host?: string
  readonly trace?: string
  readonly exception?: string
  readonly tags?: object
}

function rowOf(
  { message, host = '', trace = '', exception, tags: own = {} }: Given,
  i: number,
): object {
  const wide = isWide(message + host) ? toWords(`${message} ${host}`).join(' ') : ''
  const words = exception === undefined ? wide : `${wide}\n${toWords(exception).join(' ')}`
  const tags = exception === undefined ? own : { ...own, exception: { stack: exception } }
  const at = new Date(NOW_MS - 1_500).toISOString()
  return {
    id: i + 1,
    is_new: 1,
    n: 1,
    received_at: at,
    ts: at,
    source: i % 2 === 0 ? 'shop' : 'till',
    type: 'log',
    severity: i % 3 === 0 ? 'ERROR' : 'INFO',
    priority: 'P3',
    template_id: '0',
    host,
    trace_id: trace,
    variables: message,
    search_words: words,
    ...tagColumns(tags),
  }
}

const MESSAGES: readonly Given[] = [
  { message: 'order 17 took 10 ms for user 4' },
  { message: 'ORDER 18 Took 100 ms for user_4' },
  { message: 'disorderly conduct' },
  { message: 'connect to 10.0.0.9:80 failed' },
  { message: 'connect to 110.0.0.9 failed, v1.2.3' },
  { message: 'Größe überschritten — naïve café', host: 'wien-ö' },
  { message: '磁盘空间不足 on disk', host: 'web-1' },
  { message: 'C++ is "fun"; 100% a\\b' },
  { message: '', host: 'web-order', trace: 'ab01order00' },
  { message: 'a plain line', trace: 'deadbeef0000' },
  {
    message: 'it broke',
    exception: 'TypeError: order "17" is lost\n  at Shop.pay (shop.ts:10)\tnever',
  },
  { message: 'it broke again', exception: 'Überlauf: größe 5' },
  { message: 'a1', tags: { took: 10, user: 'ann', ok: true, http: { status: 200 } } },
  { message: 'a2', tags: { took: '10.0', user: '"ann"', ok: 'true', 'http.status': '404' } },
  { message: 'a3', tags: { took: 10.5, user: ['bob', 'ann'], ok: null } },
  { message: 'a4', tags: { took: [1, 99], user: 'a,b:c;1', n: -3 } },
  { message: 'a5', tags: { took: '1e309', user: 'Größe \u0001 x', n: '12 ms' } },
  { message: 'a6', tags: { took: -0.5, user: '', n: 1e15 } },
]

const TEXTS = [
  'order',
  'ord*',
  '"took 10 ms"',
  '"TOOK 10"',
  'user',
  'user_4',
  '10.0.0.9',
  '10.0*',
  'v1.2.3',
  'größe',
  'GRÖSSE',
  'ÜBERSCHRITTEN',
  'café',
  'na',
  '空间',
  '"— naïve"',
  'C++',
  '"a\\\\b"',
  '100%',
  'web-1',
  'web*',
  'wien*',
  'deadbeef0000',
  'typeerror',
  'shop.ts',
  '"order \\"17\\" is"',
  '"lost\\n"',
  'never',
  'überlauf',
  'message:order',
  'message:web*',
  'message:"took 10 ms"',
  'message:broke,plain',
  'message:空间',
  'NOT order',
  'order OR plain',
  'source:shop (order OR -"took 10 ms")',
  'severity:error "ms for"',
  'took:10',
  'took:10.0',
  'took:10,99',
  'took>10',
  'took>=10',
  'took<10',
  'took<=10',
  'took>-1',
  'took>10.25',
  'took:[2 TO 98]',
  'took:[1 TO 10.5]',
  'took>2 took<98',
  '-took>10',
  'user:ann',
  'user:"\\"ann\\""',
  'user:"a,b:c;1"',
  'user:""',
  'ok:true',
  'ok:null',
  'http.status:200',
  'http.status>=400',
  'n<0',
  'n>0',
  'source:shop (took>50 OR user:ann)',
  'order OR took>50',
]

const COUNT = { type: 'threshold', window: '1m', op: '>', fire: 1 } as const

function requestsOf(q: string, more: Partial<RuleFields> = {}): readonly CountRequest[] {
  const base: RuleFields = { name: 'r', severity: 'P3', q, kind: COUNT, group_by: ['source'] }
  const plan = planRule(asRule({ ...base, ...more }))
  if ('path' in plan) throw new Error(`${q}: ${plan.message}`)
  const { groupBy, everyMs, maxAgeMs } = plan
  return plan.counters.map((counter) => ({ counter, groupBy, everyMs, maxAgeMs, isLast: false }))
}

/** A store that notes the names of the statements that it is asked. */
function createCounting() {
  const asked: string[] = []
  const counting: Pick<typeof store, 'query' | 'isSharded'> = {
    isSharded: store.isSharded,
    query: (statement, params, options) => {
      asked.push(statement.name)
      return store.query(statement, params, options)
    },
  }
  return { asked, counting }
}

/** The counts by their groups. */
function summed(counts: readonly Count[]): Readonly<Record<string, number>> {
  const sums: Record<string, number> = {}
  for (const { slot, group, count } of counts) {
    const key = [slot, ...group].join()
    sums[key] = (sums[key] ?? 0) + count
  }
  return sums
}

void t.test(
  'texts and attributes that are found together are those that are found one by one',
  async (t) => {
    await store.insertRows('landing', MESSAGES.map(rowOf))
    const { asked, counting } = createCounting()
    const deps = {
      redirects: () => [],
      findings: async () => [],
    }
    const counts = createCountReader({ ...deps, store: counting, resolve: (query) => query })
    const requests = TEXTS.flatMap((q) => requestsOf(q, { group_by: ['source', 'host'] }))
    const range = { fromMs: NOW_MS - 2_000, toMs: NOW_MS }
    const together = await counts.read(requests, range)
    t.same(asked, ['alert_counts'], 'they are one question, without repeats')
    const alone = await counts.read(requests, range, { isSearch: true })
    for (const [i, text] of TEXTS.entries()) {
      const [found = [], expected = []] = [together[i], alone[i]]
      if (found instanceof Error || expected instanceof Error) throw new Error(text)
      t.same(summed(found), summed(expected), text)
    }
    const all = together.flatMap((one) => (one instanceof Error ? [] : one))
    t.ok(all.length > TEXTS.length / 2, `${all.length} groups matched`)
  },
)

void t.test(
  'the same window of a day ago is counted, and messages of the age that a rule says',
  async (t) => {
    const dayAgo = NOW_MS - DAY_MS
    const row = (id: number, receivedMs: number, tsMs: number) => ({
      ...rowOf({ message: 'past', host: 'old' }, 1),
      id,
      received_at: new Date(receivedMs).toISOString(),
      ts: new Date(tsMs).toISOString(),
    })
    await store.insertRows('landing', [
      row(101, dayAgo - 70_000, dayAgo - 70_000),
      row(102, dayAgo - 3_000, dayAgo - 3_000),
      row(103, dayAgo - 2_000, dayAgo - 2_000),
      row(104, NOW_MS - 2_000, NOW_MS - 3 * HOUR_MS),
      { ...row(102, dayAgo - 1_000, dayAgo - 1_000), is_new: 0, n: 3 },
    ])
    const counts = createCountReader({
      redirects: () => [],
      findings: async () => [],
      store,
      resolve: (query) => query,
    })
    const every = '1s'
    const change = { type: 'change', window: '1m', against: 'day', factor: 2 } as const
    const requests = [
      ...requestsOf('host:old', { kind: change, every }),
      ...requestsOf('host:old', { max_age: '6h', every }),
    ]
    const range = { fromMs: NOW_MS - 3_000, toMs: NOW_MS }
    const [now, past, aged] = await counts.read(requests, range)
    t.same(now, [], 'what was three hours old does not count')
    const windows = [
      { slot: NOW_MS / 1_000 - 3, group: ['till'], count: 1 },
      { slot: NOW_MS / 1_000 - 2, group: ['till'], count: 2 },
      { slot: NOW_MS / 1_000 - 1, group: ['till'], count: 5 },
    ]
    t.same(past, windows, 'each window that ended in the range')
    t.same(aged, [{ slot: NOW_MS / 1_000 - 2, group: ['till'], count: 1 }])
  },
)

void t.test('repeats count where they arrived, in one more question', async (t) => {
  const at = NOW_MS - 30_000
  const row = (id: number, atMs: number) => ({
    ...rowOf({ message: 'again', host: 'again' }, 1),
    id,
    received_at: new Date(atMs).toISOString(),
    ts: new Date(atMs).toISOString(),
  })
  await store.insertRows('landing', [
    row(301, at - 5_000),
    row(302, at),
    { ...row(301, at), is_new: 0, n: 4 },
  ])
  const { asked, counting } = createCounting()
  const deps = { redirects: () => [], findings: async () => [] }
  const counts = createCountReader({ ...deps, store: counting, resolve: (query) => query })
  const requests = [
    ...requestsOf('host:again', { every: '1s' }),
    ...requestsOf('host:again', { every: '1s', kind: { ...COUNT, of: 'events' } }),
    ...requestsOf('host:again message:/aga.n/', { every: '1s' }),
  ]
  const found = await counts.read(requests, { fromMs: at, toMs: at + 1_000 })
  const slot = at / 1_000
  t.same(
    found.map((own) => (own instanceof Error ? own : summed(own))),
    [{ [`${slot},till`]: 5 }, { [`${slot},till`]: 1 }, { [`${slot},till`]: 5 }],
    'the rule of events counts the first alone',
  )
  t.same(asked, ['alert_counts', 'alert_repeat_counts', 'alert_counts', 'alert_repeat_counts'])
})

void t.test(
  'of the dead letters of very many sources those of the sources with the most are counted',
  async (t) => {
    const at = NOW_MS - 30_000
    const named = (source: string) => ({ received_at: new Date(at).toISOString(), source })
    const many = Array.from({ length: 10_050 }, (_, i) => named(`s${i}`))
    await store.insertRows('dead_letters', [...many, named('s10040'), named('s10040')])
    const deps = { redirects: () => [], findings: async () => [] }
    const counts = createCountReader({ ...deps, store, resolve: (query) => query })
    const request = { counter: { kind: 'dead letters' }, everyMs: 1_000, isLast: false } as const
    const range = { fromMs: at, toMs: at + 1_000 }
    const [all, own] = await counts.read(
      [
        { ...request, groupBy: [] },
        { ...request, groupBy: ['source'] },
      ],
      range,
    )
    t.same(all, [{ slot: at / 1_000, group: [], count: 10_052 }])
    if (own === undefined || own instanceof Error) throw new Error('no answer')
    t.equal(own.length, 10_000)
    t.same(
      own.filter(({ count }) => count > 1),
      [{ slot: at / 1_000, group: ['s10040'], count: 3 }],
    )
  },
)

void t.test('the windows of a metric that end in a range are asked for together', async (t) => {
  const base = NOW_MS - 60_000
  const row = (id: number, at: number, took: number) => ({
    ...rowOf({ message: `timed ${id}`, host: 'timed', tags: { took } }, 1),
    id,
    received_at: new Date(base + at * 1_000).toISOString(),
    ts: new Date(base + at * 1_000).toISOString(),
  })
  const repeat = { ...row(201, 14, 10), is_new: 0, n: 3 }
  await store.insertRows('landing', [row(201, 1, 10), row(202, 12, 50), row(203, 31, 90), repeat])
  const counts = createCountReader({
    redirects: () => [],
    findings: async () => [],
    store,
    resolve: (query) => query,
  })
  const metric = { type: 'value', metric: 'avg(took)', window: '20s', op: '>', fire: 1 } as const
  const [request] = requestsOf('host:timed', { kind: metric, every: '10s', group_by: [] })
  if (request === undefined) throw new Error('no request')
  const first = Math.floor(base / 10_000)
  const asked = { fromMs: first * 10_000, toMs: (first + 6) * 10_000 }
  for (const isPast of [false, true]) {
    const [found] = await counts.read([request], { ...asked, isPast })
    if (found === undefined || found instanceof Error) throw new Error('no answer')
    const alone = []
    for (let slot = first; slot < first + 6; slot++) {
      const own = { fromMs: slot * 10_000, toMs: (slot + 1) * 10_000, isPast }
      const [one] = await counts.read([request], own)
      if (one === undefined || one instanceof Error) throw new Error('no answer')
      alone.push(...one)
    }
    const bySlot = (all: readonly Count[]): readonly Count[] =>
      all.toSorted((a, b) => a.slot - b.slot)
    t.same(bySlot(found), bySlot(alone), 'each window is the same alone')
    const values = bySlot(found).map(({ count }) => count)
    t.ok(values.includes(20), `three repeats of 10 and one 50 are 20 on average: ${values.join()}`)
  }
})

void t.test('whether a template is new is judged for each row by when it arrived', async (t) => {
  const base = Math.floor(NOW_MS / HOUR_MS) * HOUR_MS - 30 * HOUR_MS
  const row = (id: number, template: number, hours: number) => ({
    ...rowOf({ message: `comet ${template}`, host: 'sky' }, 1),
    id,
    template_id: String(template),
    received_at: new Date(base + hours * HOUR_MS).toISOString(),
    ts: new Date(base + hours * HOUR_MS).toISOString(),
  })
  const repeat = { ...row(303, 8, 5.5), is_new: 0, n: 2 }
  await store.insertRows('landing', [
    row(301, 7, 0.5),
    row(302, 7, 2.5),
    row(303, 8, 5.25),
    repeat,
    row(304, 8, 7.5),
    row(305, 7, 9.5),
  ])
  const counts = createCountReader({
    redirects: () => [],
    findings: async () => [],
    store,
    resolve: (query) => query,
  })
  const requests = requestsOf('host:sky', { kind: { type: 'new_template' }, group_by: [] })
  const range = { fromMs: base, toMs: base + 10 * HOUR_MS, isPast: true }
  const [found] = await counts.read(requests, range)
  if (found === undefined || found instanceof Error) throw new Error('no answer')
  const byTemplate = summed(found.map((one) => ({ ...one, slot: 0 })))
  t.same(byTemplate, { '0,0000000000000007': 1, '0,0000000000000008': 3 })
})
