import { test } from 'tap'
import type { Count } from '../../../src/alerting/count.js'
import { createCountReader } from '../../../src/alerting/counts.js'
import { planRule } from '../../../src/alerting/rule.js'
import { asRule } from '../../../src/alerting/rules.js'
import { createArrivalReader } from '../../../src/events/arrivals.js'
import { toWords } from '../../../src/model/words.js'
import { createTestDatabase, startTestServer } from '../../support/clickhouse.js'
import { applySchema, tagColumns } from '../../support/landing.js'

const server = await startTestServer()
const { store, drop } = await createTestDatabase(server)
await applySchema(store)

const NOW_MS = Math.floor(Date.now() / 1000) * 1000
/** What ingest stores of an event's words. */
const isWide = (text: string): boolean => /[^\0-\x7f]/.test(text)

interface Given {
  readonly message: string
  readonly host?: string
  readonly trace?: string
  readonly exception?: string
}

function rowOf({ message, host = '', trace = '', exception }: Given, i: number): object {
  const wide = isWide(message + host) ? toWords(`${message} ${host}`).join(' ') : ''
  const words = exception === undefined ? wide : `${wide}\n${toWords(exception).join(' ')}`
  const tags = exception === undefined ? {} : { exception: { stack: exception } }
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
]

const requestOf = (q: string) => {
  const kind = { type: 'threshold', window: '1m', op: '>', fire: 1 } as const
  const plan = planRule(asRule({ name: q, severity: 'P3', q, kind, group_by: ['source', 'host'] }))
  if ('path' in plan) throw new Error(`${q}: ${plan.message}`)
  const [counter] = plan.counters
  if (counter === undefined) throw new Error('it counts something')
  return { counter, groupBy: plan.groupBy, everyMs: plan.everyMs, isLast: false }
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

void test('texts that are found together are those that are found one by one', async (t) => {
  t.teardown(async () => {
    await drop()
    await server.stop()
  })
  await store.insertRows('landing', MESSAGES.map(rowOf))
  const asked: string[] = []
  const counting: Pick<typeof store, 'query' | 'isSharded'> = {
    isSharded: store.isSharded,
    query: (statement, params, options) => {
      asked.push(statement.name)
      return store.query(statement, params, options)
    },
  }
  const deps = { arrivals: createArrivalReader(store), redirects: () => [] }
  const counts = createCountReader({ ...deps, store: counting, resolve: (query) => query })
  const requests = TEXTS.map(requestOf)
  const range = { fromMs: NOW_MS - 2_000, toMs: NOW_MS, after: [] }
  const together = await counts.read(requests, range)
  t.same(asked, ['alert_counts', 'alert_repeat_counts'], 'they are one question')
  const alone = await counts.read(requests, range, { isSearch: true })
  for (const [i, text] of TEXTS.entries()) {
    const [found = [], expected = []] = [together[i], alone[i]]
    if (found instanceof Error || expected instanceof Error) throw new Error(text)
    t.same(summed(found), summed(expected), text)
  }
  const all = together.flatMap((one) => (one instanceof Error ? [] : one))
  t.ok(all.length > TEXTS.length / 2, `${all.length} groups matched`)
})
